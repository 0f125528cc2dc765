"""Training that survives contaminated data: ADC and IADC."""
