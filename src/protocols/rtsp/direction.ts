/** Fields of a section that determine which side sends. */
export interface Directed {
  readonly type: string;
  /** Direction of the section, or else of the whole description. */
  readonly direction: string | undefined;
}

/**
 * Selects the sections in which the server sends. ONVIF's Streaming Specification marks directions from the client's side:
 * `sendonly` is then a back channel, only for clients that request it by `Require`. Others mark them from the server's side. A
 * video section shows which convention applies: it is never a back channel.
 */
export function sentByServer<T extends Directed>(sections: readonly T[]): readonly T[] {
  const active = sections.filter(({ direction }) => direction !== 'inactive');
  const isMarked = (type: string, mark: string): boolean =>
    active.some((section) => section.type === type && section.direction === mark);
  const isServers = isMarked('video', 'sendonly') && !isMarked('video', 'recvonly');
  const backChannel = isServers ? 'recvonly' : 'sendonly';
  const sent = active.filter(({ type, direction }) => type === 'video' || direction !== backChannel);
  // a description never has a back channel alone
  return sent.some(({ type }) => type === 'video' || type === 'audio') ? sent : active;
}
