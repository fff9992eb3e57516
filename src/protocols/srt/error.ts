/** libsrt refused a call, or is not installed. */
export class SrtError extends Error {
  override readonly name: string = 'SrtError';
}
