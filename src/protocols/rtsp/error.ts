/** What came over RTSP is not what the protocol says, or the other side refused. */
export class RtspError extends Error {
  override readonly name = 'RtspError';
  /** Of the answer that refused; undefined for everything else. */
  readonly status: number | undefined;

  constructor(message: string, status?: number) {
    super(message);
    this.status = status;
  }
}
