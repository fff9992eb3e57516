import { hasRoom, type NodeRow } from '#cluster';

/** Module whose viewers may be sent to another node, as nodes name it in their addresses. */
export type SentModule = 'llhls' | 'hls' | 'webrtc';

/** URL at which clients reach a node itself, if it has one: scheme, host and port. */
export function publicUrlOf({ info: { publicUrl } }: NodeRow): string | undefined {
  return typeof publicUrl === 'string' ? publicUrl : undefined;
}

/**
 * Tests whether viewers of a module reach a node by its public URL.
 * @param isSecure whether they come over TLS: browsers go from https to https alone
 */
export function isReached(row: NodeRow, module: SentModule, isSecure: boolean): boolean {
  const { addresses } = row.info;
  const serves = typeof addresses === 'object' && addresses !== null && module in addresses;
  const url = publicUrlOf(row);
  return serves && url !== undefined && (!isSecure || url.startsWith('https:'));
}

/** Tests whether viewers of a module may be sent to a node: it has room, and is reached. Parameters as of `isReached`. */
export function takesViewers(row: NodeRow, module: SentModule, isSecure: boolean): boolean {
  return hasRoom(row) && isReached(row, module, isSecure);
}
