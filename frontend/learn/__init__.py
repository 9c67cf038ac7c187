"""The course: `python -m redispatch learn`. A lesson is data; a student's file is checked in a process of its own.

    python -m redispatch learn                  # the board
    python -m redispatch learn D01              # a lesson's text
    python -m redispatch learn start D01        # copies its template: d01.py
    python -m redispatch learn check D01        # what of it holds
    python -m redispatch learn hint D01         # three of them, one at a time

Read in this order: lesson.py (what a lesson is), lessons/d01.py (one), student.py and child.py (where a student's file
runs), check.py (how it is judged), command.py.
"""

from .check import Report, check
from .lesson import LESSONS, Lesson, Part, Wrong

__all__ = ["LESSONS", "Lesson", "Part", "Report", "Wrong", "check"]
