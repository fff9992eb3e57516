/** What came over OVT is not what the protocol says, or the other side refused. */
export class OvtError extends Error {
  /** Of the answer that refused, as docs/compatibility.md#ovt lists them; undefined for everything else. */
  readonly code: number | undefined;

  constructor(message: string, code?: number) {
    super(message);
    this.name = 'OvtError';
    this.code = code;
  }
}

/** The other end did not answer in time. */
export class OvtSilenceError extends OvtError {}
