"""The command leads through a lesson, watches a file, writes the course's page, and a class's points."""

import csv
import json
import signal
import subprocess
import sys
from html.parser import HTMLParser
from threading import Timer

from redispatch.__main__ import main
from redispatch.learn import LESSONS
from redispatch.learn.command import passed_before
from redispatch.learn.page import article, write

from . import d01
from .test_lessons import changed


def test_the_command_leads_through_a_lesson(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["learn"]) == 0 and "D01" in capsys.readouterr().out
    assert main(["learn", "d01"]) == 0 and "highest bit" in capsys.readouterr().out
    assert main(["learn", "D99"]) == 2
    assert main(["learn", "start", "D01"]) == 0 and (tmp_path / "d01.py").read_text() == LESSONS["D01"].template
    assert main(["learn", "start", "D01"]) == 2
    (tmp_path / "d01.py").write_text(changed("D01", *d01.WRONG["fallthroughs stop a call"][1:]))
    capsys.readouterr()
    assert main(["learn", "check", "D01", "--json", "out.json", "--gradescope", "results.json"]) == 1
    out = json.loads((tmp_path / "out.json").read_text())
    assert out["status"] == 1 and {part["name"]: part["points"] for part in out["parts"]}["stops_at"] == 0
    scored = json.loads((tmp_path / "results.json").read_text())
    assert scored["score"] == out["points"] and len(scored["tests"]) == 4
    assert main(["learn", "hint", "D01"]) == 0 and main(["learn", "hint", "D01"]) == 0
    assert capsys.readouterr().out.count("1. ") == 2
    assert main(["learn", "demo", "D01"]) == 0 and "AutogradCPU" in capsys.readouterr().out
    assert main(["learn", "report"]) == 0
    noted = json.loads(capsys.readouterr().out)["D01"]
    assert noted["hints"] == 2 and noted["points"] == out["points"]


WRONG = changed("D01", *d01.WRONG["fallthroughs stop a call"][1:])


def test_a_file_that_is_watched_is_checked_again_when_it_is_saved(tmp_path):
    file = tmp_path / "d01.py"
    file.write_text(WRONG)
    command = [sys.executable, "-m", "redispatch", "learn", "watch", "D01"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    clock = Timer(120, process.kill)  # where the lines do not come
    clock.start()
    try:
        read = iter(process.stdout.readline, "")
        assert any(line.startswith("wrong stops_at") for line in read)
        assert any(line.startswith(("ok", "wrong")) and "the library on it" in line for line in read)
        file.write_text(d01.SOLUTION)
        assert any(line.startswith("ok    stops_at") for line in read)
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(60) == 0
    finally:
        clock.cancel()
        process.kill()
        process.stdout.close()
        process.wait()


def test_a_classes_points_are_a_table(tmp_path, capsys):
    for name, text in (("ada", d01.SOLUTION), ("bo", WRONG), ("cy", None)):
        (tmp_path / "class" / name).mkdir(parents=True)
        if text:
            (tmp_path / "class" / name / "d01.py").write_text(text)
    assert main(["learn", "report", str(tmp_path / "class"), "--csv", str(tmp_path / "points.csv")]) == 0
    rows = list(csv.reader((tmp_path / "points.csv").read_text().splitlines()))
    most = LESSONS["D01"].points
    assert rows[0] == ["student", "D01", "sum"]
    assert rows[1:] == [["ada", str(most), str(most)], ["bo", rows[2][1], rows[2][1]], ["cy", "0", "0"]]
    assert 0 < int(rows[2][1]) < most
    assert main(["learn", "report", str(tmp_path / "none")]) == 2 and "no folder" in capsys.readouterr().out


def test_a_file_that_has_passed_carries_later_lessons_as_long_as_it_stays_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "d01.py"
    file.write_text(d01.SOLUTION)
    later = type(LESSONS["D01"])(**{**vars(LESSONS["D01"]), "row": "D99", "needs": ("D01",)})
    assert passed_before(later, tmp_path / "d99.py") == {}
    assert main(["learn", "check"]) == 0
    assert passed_before(later, tmp_path / "d99.py") == {"D01": file}
    file.write_text(d01.SOLUTION + "\n")
    assert passed_before(later, tmp_path / "d99.py") == {}
    file.unlink()
    capsys.readouterr()
    assert main(["learn", "check"]) == 2 and "no lesson's file here" in capsys.readouterr().out


class Tags(HTMLParser):
    """Collects what a page refers to, and whether its tags close."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br", "hr", "img"):
            self.open.append(tag)
        attrs = dict(attrs)
        self.links += [attrs[one] for one in ("href", "src") if one in attrs]
        self.ids += [attrs["id"]] if "id" in attrs else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_has_the_lessons_with_what_their_demos_print(tmp_path, monkeypatch):
    page = write({"D01": LESSONS["D01"]}, {"D01": {"points": 3}})
    tags = Tags()
    tags.feed(page)
    assert not tags.open and {"#D01"} == set(tags.links) and tags.ids == ["D01"]
    assert "AutogradCPU" in page and f"3/{LESSONS['D01'].points}" in page and "def keyset(arguments" in page
    assert "http" not in page


def test_texts_with_signs_of_html_are_set_as_they_are():
    lesson = type(LESSONS["D01"])(**{**vars(LESSONS["D01"]), "text": "# a < b\n\n`x<y>` & <script>alert()</script>"})
    text = article(lesson, "<b>")
    assert "<script>" not in text and "a &lt; b" in text and "&lt;b&gt;" in text
