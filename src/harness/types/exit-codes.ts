/** What the process exits with. */
export const EXIT_CODES: {
  readonly success: 0;
  readonly failed: 1;
  readonly usage: 2;
  readonly environment: 3;
  readonly push: 4;
  readonly limit: 5;
  readonly noChanges: 6;
  readonly interrupted: 130;
  readonly terminated: 143;
} = {
  success: 0,
  failed: 1,
  usage: 2,
  environment: 3,
  push: 4,
  limit: 5,
  noChanges: 6,
  interrupted: 130,
  terminated: 143,
};
