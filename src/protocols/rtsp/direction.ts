/** What matters of a section to tell who sends in it. */
export interface Directed {
  readonly type: string;
  /** Its own, or that of the whole description. */
  readonly direction: string | undefined;
}

/**
 * The sections in which the server sends. ONVIF's Streaming Specification marks them from the client's side, so that
 * `sendonly` is a back channel, which is there for those alone that ask for it by `Require`; others mark them from the
 * server's side. The video tells which: it is never a back channel.
 */
export function sentByServer<T extends Directed>(sections: readonly T[]): readonly T[] {
  const active = sections.filter(({ direction }) => direction !== 'inactive');
  const isMarked = (type: string, mark: string): boolean =>
    active.some((section) => section.type === type && section.direction === mark);
  const isServers = isMarked('video', 'sendonly') && !isMarked('video', 'recvonly');
  const backChannel = isServers ? 'recvonly' : 'sendonly';
  const sent = active.filter(({ type, direction }) => type === 'video' || direction !== backChannel);
  // nobody describes a back channel alone
  return sent.some(({ type }) => type === 'video' || type === 'audio') ? sent : active;
}
