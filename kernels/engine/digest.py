"""sha256, imported when it is first needed: loading OpenSSL for it would be a tenth of the import of this library."""


def digest(*parts: bytes) -> bytes:
    """The sha256 of the parts, one after the other."""
    import hashlib  # here for the reason above

    return hashlib.sha256(b"".join(parts)).digest()
