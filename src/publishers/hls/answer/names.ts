import { randomBytes } from 'node:crypto';
import type { HlsPublisherConfig } from '../../../config/model.ts';

/**
 * Path before a child's name, by HLSChunklistPathDepth (docs/compatibility.md#hls). All are relative: a proxy may serve Kiln below
 * a path that Kiln cannot know.
 */
export function childPrefix(depth: number, application: string, stream: string): string {
  switch (depth) {
    case 1:
      return `../${encodeURIComponent(stream)}/`;
    case 2:
      return `../..${streamPath(application, stream)}`;
    default:
      return '';
  }
}

/** Path of a stream's files from the root of a host. */
export function streamPath(application: string, stream: string): string {
  return `/${encodeURIComponent(application)}/${encodeURIComponent(stream)}/`;
}

/** Configured query of every file, with its `?`; empty for none. */
export function defaultQuery({ defaultQueryString }: HlsPublisherConfig): string {
  const pairs = defaultQueryString.map(({ key, value }) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`);
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

const KEY_CHARS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012345678901';

/** Eight random characters that distinguish runs of a stream. */
export function randomKey(): string {
  return Array.from(randomBytes(8), (byte) => KEY_CHARS[byte % KEY_CHARS.length]).join('');
}

/** FNV-1a of a name: the same on every origin. */
export function nameHash(name: string): string {
  return contentHash(Buffer.from(name));
}

/** FNV-1a of bytes: the same on every origin. */
export function contentHash(content: Buffer): string {
  let hash = 0x811c9dc5;
  for (const byte of content) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return String(hash);
}
