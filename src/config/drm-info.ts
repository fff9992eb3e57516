import { resolve } from 'node:path';
import { wildcard } from '../lib/wildcard.ts';
import { ConfigError } from './config-error.ts';
import type { ServerConfig } from './model.ts';
import type { Problem } from './resolve.ts';
import { readXml, type XmlElement } from './xml.ts';

/** Entry of a DRM info file (OvenMediaEngine manual, "Low-Latency HLS", "DRM"). Its key is never logged or shown. */
export interface DrmEntry {
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
}

/** Names of an output stream. */
export interface DrmNames {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
}

/** Entries of a file, in order. */
export type DrmInfo = readonly { readonly entry: DrmEntry; readonly matches: (names: DrmNames) => boolean }[];

const NAMES = ['Name', 'VirtualHostName', 'ApplicationName', 'StreamName'];
const KEYS = ['CencProtectScheme', 'KeyId', 'Key', 'Iv'];
const OTHERS = ['Pssh', 'FairPlayKeyUrl', 'Keyformat'];
const FORMER = ['DRMProvider', 'DRMSystem', 'KMSUrl', 'KMSToken', 'ContentId'];
const ID_BYTES = 16;
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

/** Finds the entry of a stream: the first one that matches; undefined for none. */
export function drmOf(info: DrmInfo, names: DrmNames): DrmEntry | undefined {
  return info.find(({ matches }) => matches(names))?.entry;
}

/** Problems of the DRM info files that a configuration names. @param folder of Server.xml */
export function drmProblems(config: ServerConfig, folder: string): Problem[] {
  const problems: Problem[] = [];
  config.virtualHosts.forEach(({ applications }, vhost) => {
    applications.forEach(({ publishers: { llhls } }, application) => {
      if (llhls?.drm?.enable !== true) return;
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
  for (const child of element.children) {
    const { name } = child;
    if (FORMER.includes(name))
      fail(child, `${name} is not supported: write KeyId, Key, Iv and Pssh of the key server's answer`);
    else if (![...NAMES, ...KEYS, ...OTHERS].includes(name)) fail(child, `${name} is no element of DRM`);
    else if (name !== 'Pssh' && element.children.find((other) => other.name === name) !== child)
      fail(child, `${name} is there twice`);
  }
  const text = (name: string): string => element.children.find((child) => child.name === name)?.text ?? '';
  const bytes = (name: string): Buffer => {
    const value = Buffer.from(text(name), 'hex');
    if (!/^[0-9a-f]{32}$/i.test(text(name)))
      fail(element, `${name} must be ${ID_BYTES} bytes as ${2 * ID_BYTES} hexadecimal digits`);
    return value;
  };
  const scheme = text('CencProtectScheme');
  if (scheme !== 'cbcs' && scheme !== 'cenc') fail(element, 'CencProtectScheme must be cbcs or cenc');
  const pssh = element.children.filter(({ name }) => name === 'Pssh').map((child) => readPssh(child, fail));
  const keyUrl = text('FairPlayKeyUrl') || undefined;
  if (keyUrl !== undefined && !/^[a-z][a-z0-9+.-]*:[^\s"]+$/i.test(keyUrl)) fail(element, 'FairPlayKeyUrl is no URL');
  const format = text('Keyformat');
  const keyformat = format === 'identity' ? 'identity' : 'fairplay';
  if (keyformat === 'fairplay' && !FAIRPLAY_FORMATS.includes(format))
    fail(element, 'Keyformat must be identity, or absent');
  if (keyUrl === undefined && pssh.length === 0)
    fail(element, 'needs Pssh or FairPlayKeyUrl: players would not find the key');
  if (keyUrl !== undefined && keyformat === 'fairplay' && scheme === 'cenc')
    fail(element, 'FairPlay needs cbcs: FairPlayKeyUrl cannot be used with cenc');
  const patterns = NAMES.slice(1).map((name) => wildcard(text(name) || '*'));
  return {
    entry: {
      ...{ pssh, keyUrl, keyformat },
      scheme: scheme === 'cenc' ? 'cenc' : 'cbcs',
      keyId: bytes('KeyId'),
      key: bytes('Key'),
      iv: bytes('Iv'),
    },
    matches: ({ vhost, app, stream }) =>
      [vhost, app, stream].every((name, index) => (patterns[index] as RegExp).test(name)),
  };
}

/** Reads a whole `pssh` box (ISO/IEC 23001-7, 8.1). */
function readPssh(element: XmlElement, fail: Fail): Buffer {
  const { text } = element;
  const box = Buffer.from(text, 'hex');
  if (!/^(?:[0-9a-f]{2})+$/i.test(text) || !isPssh(box))
    fail(element, 'Pssh must be a whole pssh box in hexadecimal digits');
  return box;
}

function isPssh(box: Buffer): boolean {
  if (box.length < 32 || box.readUInt32BE(0) !== box.length || box.toString('latin1', 4, 8) !== 'pssh') return false;
  let at = 28;
  if ((box[8] as number) > 1) return false;
  if (box[8] === 1) at += 4 + ID_BYTES * box.readUInt32BE(at);
  return at + 4 <= box.length && at + 4 + box.readUInt32BE(at) === box.length;
}
