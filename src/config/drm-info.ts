import { resolve } from 'node:path';
import { wildcard } from '../lib/wildcard.ts';
import { ConfigError } from './config-error.ts';
import type { ServerConfig } from './model.ts';
import type { Problem } from './resolve.ts';
import { readXml, type XmlElement } from './xml.ts';

/** Key of a DRM info file, and how it is used (OvenMediaEngine manual, "Low-Latency HLS", "DRM"). `key` is never logged or shown. */
export interface DrmKey {
  readonly scheme: 'cbcs' | 'cenc';
  /** 16 bytes each. */
  readonly keyId: Buffer;
  readonly key: Buffer;
  readonly iv: Buffer;
  /** Whole boxes. */
  readonly pssh: readonly Buffer[];
  /** URL that players get the key from, without a box. */
  readonly keyUrl: string | undefined;
  readonly keyformat: 'fairplay' | 'identity';
  /** Attribute lists of EXT-X-KEY and EXT-X-SESSION-KEY that a key server chose; absent: they are made from the rest. */
  readonly tags?: { readonly media: readonly string[]; readonly session: readonly string[] };
}

/** Names of an output stream. */
export interface DrmNames {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
}

/** Keys of an entry, in the order of their use: one at least. They differ in `keyId`, and have the same key systems. */
export type DrmKeys = readonly [DrmKey, ...DrmKey[]];

/** Entries of a file, in order. */
export type DrmInfo = readonly { readonly keys: DrmKeys; readonly matches: (names: DrmNames) => boolean }[];

const NAMES = ['Name', 'VirtualHostName', 'ApplicationName', 'StreamName'];
/** Elements of a key: of the first one in `DRM` itself, of others in `NextKey`. */
const KEY = ['KeyId', 'Key', 'Iv', 'Pssh', 'FairPlayKeyUrl'];
const ENTRY = [...NAMES, 'CencProtectScheme', 'Keyformat', ...KEY, 'NextKey'];
const REPEATED = ['Pssh', 'NextKey'];
const FORMER = ['DRMProvider', 'DRMSystem', 'KMSUrl', 'KMSToken', 'ContentId'];
const ID_BYTES = 16;
/** Offset of the system id in `pssh` (ISO/IEC 23001-7, 8.1.1). */
const SYSTEM_AT = 12;
const FAIRPLAY_FORMATS = ['', 'com.apple.streamingkeydelivery'];

/**
 * Reads a DRM info file. Its messages have no values, which may be keys.
 * @throws ConfigError with a line for each problem
 */
export function readDrmInfo(file: string): DrmInfo {
  const root = readXml(file);
  if (root.name !== 'DRMInfo') throw new ConfigError([`${file}: the root element must be DRMInfo`]);
  const problems: string[] = [];
  const info = root.children.map((child) => {
    const fail = ({ line }: XmlElement, message: string): void => void problems.push(`${file}:${line}: ${message}`);
    return readEntry(child, fail);
  });
  if (problems.length > 0) throw new ConfigError(problems);
  if (info.length === 0) throw new ConfigError([`${file}: DRMInfo has no DRM element`]);
  return info;
}

/** Finds the keys of a stream: those of the first entry that matches; undefined for none. */
export function drmOf(info: DrmInfo, names: DrmNames): DrmKeys | undefined {
  return info.find(({ matches }) => matches(names))?.keys;
}

/** System id of a whole `pssh` box, in hexadecimal digits. */
export function systemOf(pssh: Buffer): string {
  return pssh.toString('hex', SYSTEM_AT, SYSTEM_AT + ID_BYTES);
}

/** Key systems that can use a key: two keys with the same text have the same ones. */
export function systemsOf({ pssh, keyUrl, keyformat }: DrmKey): string {
  const systems = pssh.map(systemOf).sort();
  return [...systems, ...(keyUrl === undefined ? [] : [keyformat])].join();
}

/** Problems of the DRM info files that a configuration names. @param folder of Server.xml */
export function drmProblems(config: ServerConfig, folder: string): Problem[] {
  const problems: Problem[] = [];
  config.virtualHosts.forEach(({ applications }, vhost) => {
    applications.forEach(({ publishers: { llhls } }, application) => {
      if (llhls?.drm?.enable !== true || llhls.drm.infoFile === '') return;
      const path = ['virtualHosts', vhost, 'applications', application, 'publishers', 'llhls', 'drm', 'infoFile'];
      try {
        readDrmInfo(resolve(folder, llhls.drm.infoFile));
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        for (const message of error.message.split('\n')) problems.push({ path, message });
      }
    });
  });
  return problems;
}

type Fail = (element: XmlElement, message: string) => void;

function readEntry(element: XmlElement, fail: Fail): DrmInfo[number] {
  if (element.name !== 'DRM') fail(element, `${element.name} is no element of DRMInfo`);
  checkNames(element, ENTRY, fail);
  const scheme = textOf(element, 'CencProtectScheme');
  if (scheme !== 'cbcs' && scheme !== 'cenc') fail(element, 'CencProtectScheme must be cbcs or cenc');
  const format = textOf(element, 'Keyformat');
  const keyformat = format === 'identity' ? 'identity' : 'fairplay';
  if (keyformat === 'fairplay' && !FAIRPLAY_FORMATS.includes(format))
    fail(element, 'Keyformat must be identity, or absent');
  const common = { keyformat, scheme: scheme === 'cenc' ? 'cenc' : 'cbcs' } as const;
  const keys: [DrmKey, ...DrmKey[]] = [readKey(element, common, fail)];
  for (const child of element.children) {
    if (child.name !== 'NextKey') continue;
    checkNames(child, KEY, fail);
    const key = readKey(child, common, fail);
    if (keys.some(({ keyId }) => keyId.equals(key.keyId))) fail(child, 'KeyId is that of another key of the entry');
    if (systemsOf(key) !== systemsOf(keys[0]))
      fail(child, 'all keys of an entry need Pssh and FairPlayKeyUrl of the same key systems');
    if (key.keyUrl !== undefined && keys.some(({ keyUrl }) => keyUrl === key.keyUrl))
      fail(child, 'FairPlayKeyUrl is that of another key of the entry');
    keys.push(key);
  }
  const patterns = NAMES.slice(1).map((name) => wildcard(textOf(element, name) || '*'));
  return {
    keys,
    matches: ({ vhost, app, stream }) =>
      [vhost, app, stream].every((name, index) => (patterns[index] as RegExp).test(name)),
  };
}

function checkNames(element: XmlElement, names: readonly string[], fail: Fail): void {
  for (const child of element.children) {
    const { name } = child;
    if (FORMER.includes(name)) fail(child, `${name} is not supported here: write KeyServer into DRM of Server.xml`);
    else if (!names.includes(name)) fail(child, `${name} is no element of ${element.name}`);
    else if (!REPEATED.includes(name) && element.children.find((other) => other.name === name) !== child)
      fail(child, `${name} is there twice`);
  }
}

function readKey(element: XmlElement, common: Pick<DrmKey, 'scheme' | 'keyformat'>, fail: Fail): DrmKey {
  const bytes = (name: string): Buffer => {
    const text = textOf(element, name);
    if (!/^[0-9a-f]{32}$/i.test(text))
      fail(element, `${name} must be ${ID_BYTES} bytes as ${2 * ID_BYTES} hexadecimal digits`);
    return Buffer.from(text, 'hex');
  };
  const pssh = element.children.filter(({ name }) => name === 'Pssh').map((child) => readPssh(child, fail));
  const keyUrl = textOf(element, 'FairPlayKeyUrl') || undefined;
  if (keyUrl !== undefined && !/^[a-z][a-z0-9+.-]*:[^\s"]+$/i.test(keyUrl)) fail(element, 'FairPlayKeyUrl is no URL');
  if (keyUrl === undefined && pssh.length === 0)
    fail(element, 'needs Pssh or FairPlayKeyUrl: players would not find the key');
  if (keyUrl !== undefined && common.keyformat === 'fairplay' && common.scheme === 'cenc')
    fail(element, 'FairPlay needs cbcs: FairPlayKeyUrl cannot be used with cenc');
  return { ...common, pssh, keyUrl, keyId: bytes('KeyId'), key: bytes('Key'), iv: bytes('Iv') };
}

function textOf(element: XmlElement, name: string): string {
  return element.children.find((child) => child.name === name)?.text ?? '';
}

/** Reads a whole `pssh` box (ISO/IEC 23001-7, 8.1). */
function readPssh(element: XmlElement, fail: Fail): Buffer {
  const { text } = element;
  const box = Buffer.from(text, 'hex');
  if (!/^(?:[0-9a-f]{2})+$/i.test(text) || !isPssh(box))
    fail(element, 'Pssh must be a whole pssh box in hexadecimal digits');
  return box;
}

/** Whether bytes are a whole `pssh` box (ISO/IEC 23001-7, 8.1). */
export function isPssh(box: Buffer): boolean {
  if (box.length < 32 || box.readUInt32BE(0) !== box.length || box.toString('latin1', 4, 8) !== 'pssh') return false;
  let at = 28;
  if ((box[8] as number) > 1) return false;
  if (box[8] === 1) at += 4 + ID_BYTES * box.readUInt32BE(at);
  return at + 4 <= box.length && at + 4 + box.readUInt32BE(at) === box.length;
}
