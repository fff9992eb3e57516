/** The peer broke the OVT protocol, or rejected a request. */
export class OvtError extends Error {
  /** Code of the answer that rejected a request (docs/compatibility.md#ovt); undefined for other errors. */
  readonly code: number | undefined;

  constructor(message: string, code?: number) {
    super(message);
    this.name = 'OvtError';
    this.code = code;
  }
}

/** The peer did not answer in time. */
export class OvtSilenceError extends OvtError {}
