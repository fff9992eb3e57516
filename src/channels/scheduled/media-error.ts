/** Reason why a media file cannot play, in words for the operator. */
export class MediaError extends Error {
  override readonly name: string = 'MediaError';
}

/** Thrown when too many files are being examined: nothing is known of this one. */
export class MediaBusyError extends MediaError {
  override readonly name = 'MediaBusyError';
}
