/** What libsrt refuses, or that there is none. */
export class SrtError extends Error {
  override readonly name: string = 'SrtError';
}
