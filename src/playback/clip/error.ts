/** `damaged`: not what a recorder writes; `unsupported`: valid, but of another form; `empty`: no frame is in that time. */
type ClipFault = 'damaged' | 'unsupported' | 'empty' | 'tooLong';

/** Why no clip can be made of a recording. */
export class ClipError extends Error {
  override readonly name = 'ClipError';
  readonly fault: ClipFault;

  constructor(fault: ClipFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

export function damaged(message: string): ClipError {
  return new ClipError('damaged', `the MP4 file is damaged: ${message}`);
}

/** Numbers that do not fit, or bytes that are missing, are damage of the file. */
export function asDamage(error: unknown): unknown {
  return error instanceof RangeError ? damaged(error.message) : error;
}
