/** The peer broke the RTSP protocol, or rejected a request. */
export class RtspError extends Error {
  override readonly name = 'RtspError';
  /** Status of the answer that rejected a request; undefined for other errors. */
  readonly status: number | undefined;

  constructor(message: string, status?: number) {
    super(message);
    this.status = status;
  }
}
