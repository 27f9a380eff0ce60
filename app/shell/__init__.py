"""Everything around the work: settings, log, crash reports, messages, help, tour."""
