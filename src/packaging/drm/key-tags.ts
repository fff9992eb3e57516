import type { DrmKey } from '../../config/drm-info.ts';
import { SYSTEM_IDS, uuid } from './system-ids.ts';

const FAIRPLAY_FORMAT = 'com.apple.streamingkeydelivery';
const PLAYREADY_FORMAT = 'com.microsoft.playready';
/** Offset of the system id in `pssh` (ISO/IEC 23001-7, 8.1.1). */
const SYSTEM_AT = 12;
const ID_BYTES = 16;

/** METHOD of EXT-X-KEY. */
export function methodOf(scheme: DrmKey['scheme']): string {
  return scheme === 'cbcs' ? 'SAMPLE-AES' : 'SAMPLE-AES-CTR';
}

/** Attributes of EXT-X-KEY, one list for each key system (RFC 8216bis 4.4.4.4). */
export function keyAttributes(drm: DrmKey): readonly string[] {
  if (drm.tags !== undefined) return drm.tags.media;
  const method = methodOf(drm.scheme);
  const keys = drm.pssh.map((pssh) => `METHOD=${method},${systemAttributes(pssh, drm.keyId)},KEYFORMATVERSIONS="1"`);
  if (drm.keyUrl === undefined) return keys;
  const format = drm.keyformat === 'identity' ? 'identity' : FAIRPLAY_FORMAT;
  const iv = format === 'identity' ? `,IV=0x${drm.iv.toString('hex')}` : '';
  return [...keys, `METHOD=${method},URI="${drm.keyUrl}"${iv},KEYFORMAT="${format}",KEYFORMATVERSIONS="1"`];
}

/** Attributes of EXT-X-SESSION-KEY, as `keyAttributes` has those of EXT-X-KEY. */
export function sessionAttributes(drm: DrmKey): readonly string[] {
  return drm.tags?.session ?? keyAttributes(drm);
}

/** Lines of a media playlist in front of EXT-X-MAP; '' where nothing changes. @param before keys that are in force */
export function keyLines(keys: readonly string[] | undefined, before?: readonly string[]): string {
  return changedLines(linesOf(keys), linesOf(before));
}

/** Lines of the keys of some segments after others; '' where nothing changes. @param before lines of the keys that are in force */
export function changedLines(lines: string, before: string): string {
  if (lines === before) return '';
  return lines === '' ? '#EXT-X-KEY:METHOD=NONE\n' : lines;
}

function linesOf(keys: readonly string[] = []): string {
  return keys.map((key) => `#EXT-X-KEY:${key}\n`).join('');
}

function systemAttributes(pssh: Buffer, keyId: Buffer): string {
  const id = uuid(pssh.subarray(SYSTEM_AT, SYSTEM_AT + ID_BYTES));
  if (id === SYSTEM_IDS.PlayReady) {
    const object = psshData(pssh).toString('base64');
    return `URI="data:text/plain;charset=UTF-16;base64,${object}",KEYFORMAT="${PLAYREADY_FORMAT}"`;
  }
  const data = `URI="data:text/plain;base64,${pssh.toString('base64')}"`;
  return `${data},${id === SYSTEM_IDS.Widevine ? `KEYID=0x${keyId.toString('hex')},` : ''}KEYFORMAT="urn:uuid:${id}"`;
}

/** Data of a whole `pssh` box, whose sizes were checked. */
function psshData(pssh: Buffer): Buffer {
  const after = SYSTEM_AT + ID_BYTES;
  const size = pssh[8] === 0 ? after : after + 4 + ID_BYTES * pssh.readUInt32BE(after);
  return pssh.subarray(size + 4);
}
