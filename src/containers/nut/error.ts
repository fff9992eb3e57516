/** Malformed NUT, or NUT beyond the limits. */
export class NutError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NutError';
  }
}
