/** An audio or video tag that is malformed or of a codec that is not taken. */
export class FlvError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'FlvError';
  }
}
