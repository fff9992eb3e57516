/** Reason why a channel cannot play, for the operator. */
export class ChannelError extends Error {
  override readonly name = 'ChannelError';
}
