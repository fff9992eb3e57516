/** Why a media file cannot be played, in words for the operator. */
export class MediaError extends Error {
  override readonly name = 'MediaError';
}
