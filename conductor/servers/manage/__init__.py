"""Taking VMs under management, marking them, and letting them go."""
