"""The doctor: looks at everything that a project stands on, and mends what it can."""
