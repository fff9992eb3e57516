/** Malformed audio or video tag, or one of an unsupported codec. */
export class FlvError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'FlvError';
  }
}
