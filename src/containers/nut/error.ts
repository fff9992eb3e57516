/** Bytes that are no NUT, or more of it than is taken. */
export class NutError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NutError';
  }
}
