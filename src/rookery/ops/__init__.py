"""Operations: what Rookery offers, declared once and shown by every interface."""
