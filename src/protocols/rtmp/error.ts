/** The peer broke the protocol or a limit; the message names what. The connection cannot go on. */
export class RtmpError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'RtmpError';
  }
}
