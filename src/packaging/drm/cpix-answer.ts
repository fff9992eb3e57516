import { ConfigError } from '../../config/config-error.ts';
import { isPssh, systemOf, type DrmKey } from '../../config/drm-info.ts';
import type { DrmSystem } from '../../config/elements/drm.ts';
import { parseXml, type XmlElement } from '../../config/xml.ts';
import type { KeyRequest } from './cpix-request.ts';
import { keyAttributes, methodOf } from './key-tags.ts';
import { SYSTEM_IDS, uuid } from './system-ids.ts';

/** Error for an answer that cannot be used. Its message has no key, and nothing that the answer brought but names. */
export class CpixError extends Error {
  override readonly name = 'CpixError';
}

const KEY_BYTES = 16;
const MAX_TAG_BYTES = 64 * 1024;
const MEDIA_TAG = '#EXT-X-KEY:';
const MASTER_TAG = '#EXT-X-SESSION-KEY:';
/** Attribute lists (RFC 8216 section 4.2): names with values, texts in quotation marks. */
const ATTRIBUTES = /^[A-Z0-9-]+=(?:"[^"\r\n]*"|[^",\s]+)(?:,[A-Z0-9-]+=(?:"[^"\r\n]*"|[^",\s]+))*$/;

/**
 * Reads the key that a key server answered with (DASH-IF CPIX 2.3).
 * @throws CpixError when it is another key than was asked for, lacks a key system, or is malformed
 */
export function readCpixAnswer(body: Buffer, request: KeyRequest): DrmKey {
  const root = rootOf(body);
  const { contentId } = root.attributes;
  if (contentId !== undefined && contentId !== request.contentId)
    throw new CpixError('the answer has another contentId than was asked for');
  const { scheme, keyId } = request;
  const found = contentKeyOf(root, request);
  const common = { scheme, keyId, key: keyOf(found), iv: ivOf(found) ?? request.iv, keyformat: 'fairplay' } as const;
  const systems = request.systems.map((system) => readSystem(systemElement(root, request, system), system, common));
  return {
    ...common,
    pssh: systems.flatMap(({ pssh }) => pssh),
    keyUrl: undefined,
    tags: {
      media: systems.flatMap(({ media }) => media),
      session: systems.flatMap(({ session }) => session),
    },
  };
}

function rootOf(body: Buffer): XmlElement {
  let root: XmlElement;
  try {
    root = parseXml(new TextDecoder('utf-8', { fatal: true }).decode(body), 'answer');
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof TypeError)) throw error;
    const line = /^answer:(\d+):/.exec(error.message)?.[1];
    const reason = error.message.includes('document type') ? 'it has a document type' : 'it is not well-formed';
    throw new CpixError(`the answer is no CPIX document: ${reason}${line === undefined ? '' : `, line ${line}`}`);
  }
  if (localName(root) !== 'CPIX') throw new CpixError('the answer is no CPIX document: it has another root element');
  return root;
}

function contentKeyOf(root: XmlElement, { keyId, scheme }: KeyRequest): XmlElement {
  const keys = childrenOf(childrenOf(root, 'ContentKeyList'), 'ContentKey');
  if (keys.length === 0) throw new CpixError('the answer has no key');
  const found = keys.filter((key) => isOf(key, keyId));
  const [key] = found;
  if (key === undefined) throw new CpixError(`the answer has another KeyId than was asked for: ${uuid(keyId)}`);
  if (found.length > 1) throw new CpixError('the answer has two keys with the KeyId that was asked for');
  const { commonEncryptionScheme = scheme } = key.attributes;
  if (commonEncryptionScheme !== scheme) throw new CpixError('the answer has another scheme than was asked for');
  return key;
}

function keyOf(element: XmlElement): Buffer {
  const secrets = childrenOf(childrenOf([element], 'Data'), 'Secret');
  const [value] = childrenOf(secrets, 'PlainValue');
  if (value === undefined) {
    const isEncrypted = childrenOf(secrets, 'EncryptedValue').length > 0;
    throw new CpixError(
      isEncrypted ? 'its key is encrypted for a certificate, which Kiln has none of' : 'the answer has no key',
    );
  }
  return bytesOf(value.text, 'key');
}

function ivOf({ attributes: { explicitIV } }: XmlElement): Buffer | undefined {
  return explicitIV === undefined || explicitIV === '' ? undefined : bytesOf(explicitIV, 'explicitIV');
}

function bytesOf(text: string, what: string): Buffer {
  const bytes = base64(text, what);
  if (bytes.length !== KEY_BYTES)
    throw new CpixError(`the ${what} of the answer has ${bytes.length} bytes, not ${KEY_BYTES}`);
  return bytes;
}

function systemElement(root: XmlElement, { keyId }: KeyRequest, system: DrmSystem): XmlElement {
  const found = childrenOf(childrenOf(root, 'DRMSystemList'), 'DRMSystem').find(
    (element) => isOf(element, keyId) && element.attributes['systemId']?.toLowerCase() === SYSTEM_IDS[system],
  );
  if (found === undefined) throw new CpixError(`the answer lacks ${system}`);
  return found;
}

type Common = Omit<DrmKey, 'pssh' | 'keyUrl' | 'tags'>;

interface System {
  readonly pssh: readonly Buffer[];
  readonly media: readonly string[];
  readonly session: readonly string[];
}

function readSystem(element: XmlElement, system: DrmSystem, common: Common): System {
  const boxText = textOf(element, 'PSSH');
  const pssh = boxText === '' ? [] : [base64(boxText, `PSSH of ${system}`)];
  if (pssh.some((box) => !isPssh(box) || systemOf(box) !== SYSTEM_IDS[system].replaceAll('-', '')))
    throw new CpixError(`the PSSH of ${system} is no pssh box of it`);
  const uriText = textOf(element, 'URIExtXKey');
  const keyUrl = uriText === '' || system !== 'FairPlay' ? undefined : base64(uriText, 'URIExtXKey').toString();
  if (keyUrl !== undefined && !/^[a-z][a-z0-9+.-]*:[^\s"]+$/i.test(keyUrl))
    throw new CpixError('the URIExtXKey of FairPlay is no URL');
  const derived = keyAttributes({ ...common, pssh, keyUrl });
  const signaling = childrenOf([element], 'HLSSignalingData').filter(({ text }) => text !== '');
  const given = (kind: string, tag: string): readonly string[] | undefined =>
    signaling
      .filter(({ attributes }) => (attributes['playlist'] ?? 'media') === kind)
      .map(({ text }) => readTags(base64(text, `HLSSignalingData of ${system}`), tag, system, common))[0];
  const media = given('media', MEDIA_TAG) ?? derived;
  if (media.length === 0)
    throw new CpixError(
      `the answer has neither ${system === 'FairPlay' ? 'URIExtXKey' : 'PSSH'} nor HLSSignalingData of ${system}`,
    );
  return { pssh, media, session: given('master', MASTER_TAG) ?? media };
}

/** Reads lines of a playlist that a key server chose: tags of keys, and nothing else. */
function readTags(bytes: Buffer, tag: string, system: DrmSystem, { scheme }: Common): string[] {
  if (bytes.length > MAX_TAG_BYTES) throw new CpixError(`the HLSSignalingData of ${system} is too long`);
  const lines = bytes
    .toString()
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '');
  return lines.map((line) => {
    const attributes = line.trim().slice(tag.length);
    if (!line.startsWith(tag) || !ATTRIBUTES.test(attributes) || /\p{Cc}/u.test(attributes))
      throw new CpixError(`the HLSSignalingData of ${system} has a line that is no ${tag.slice(0, -1)}`);
    if (
      !`${attributes},`.startsWith(`METHOD=${methodOf(scheme)},`) &&
      !`${attributes},`.includes(`,METHOD=${methodOf(scheme)},`)
    )
      throw new CpixError(`the HLSSignalingData of ${system} has another METHOD than ${methodOf(scheme)}`);
    return attributes;
  });
}

function base64(text: string, what: string): Buffer {
  const digits = text.replaceAll(/\s/g, '');
  if (digits.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(digits))
    throw new CpixError(`the ${what} of the answer is no base64`);
  return Buffer.from(digits, 'base64');
}

/** Whether an element is about a key. */
function isOf({ attributes: { kid = '' } }: XmlElement, keyId: Buffer): boolean {
  return kid.toLowerCase() === uuid(keyId);
}

function textOf(element: XmlElement, name: string): string {
  return childrenOf([element], name)[0]?.text ?? '';
}

function childrenOf(parents: XmlElement | readonly XmlElement[], name: string): XmlElement[] {
  const all = 'children' in parents ? [parents] : parents;
  return all.flatMap(({ children }) => children.filter((child) => localName(child) === name));
}

function localName({ name }: XmlElement): string {
  return name.slice(name.indexOf(':') + 1);
}
