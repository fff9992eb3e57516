/** An entry is there already, or is another than the caller has seen. */
export class ConflictError extends Error {
  override readonly name = 'ConflictError';
}

/** The durable copy cannot be read, locked or written; the message names the file. */
export class StorageError extends Error {
  override readonly name = 'StorageError';
}
