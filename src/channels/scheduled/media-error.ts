/** Why a media file cannot be played, in words for the operator. */
export class MediaError extends Error {
  override readonly name: string = 'MediaError';
}

/** It was not looked at, since too many are: nothing is known of it. */
export class MediaBusyError extends MediaError {
  override readonly name = 'MediaBusyError';
}
