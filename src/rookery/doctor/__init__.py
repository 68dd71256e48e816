"""The doctor: looks at everything that a project stands on, and repairs what it can."""
