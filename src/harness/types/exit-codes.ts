/** What the process exits with. */
export const EXIT_CODES = {
  success: 0,
  failed: 1,
  usage: 2,
  environment: 3,
  push: 4,
  limit: 5,
  noChanges: 6,
  interrupted: 130,
  terminated: 143,
} as const;
