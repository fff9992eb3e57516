import type { TSchema } from 'typebox';
import type { Annotations } from './blocks.ts';
import { isListSchema, isObjectSchema, type Described, type Path, type Problem } from './resolve.ts';

/** Keys whose element is not the key with a capital first letter (docs/compatibility.md#rest-answers). */
const ELEMENTS: Readonly<Record<string, string>> = {
  ip: 'IP',
  api: 'API',
  tls: 'TLS',
  tlsPort: 'TLSPort',
  rtmp: 'RTMP',
  rtmpPush: 'RTMPPush',
  rtsp: 'RTSP',
  rtspPull: 'RTSPPull',
  srt: 'SRT',
  srtPush: 'SRTPush',
  mpegts: 'MPEGTS',
  mpegtsPush: 'MPEGTSPush',
  ovt: 'OVT',
  webrtc: 'WebRTC',
  llhls: 'LLHLS',
  hls: 'HLS',
  dvr: 'DVR',
  drm: 'DRM',
  file: 'FILE',
  stt: 'STT',
  p2p: 'P2P',
  http2: 'HTTP2',
  etag: 'ETag',
  ertmp: 'ERTMP',
  sar: 'SAR',
  firInterval: 'FIRInterval',
  hlsChunklistPathDepth: 'HLSChunklistPathDepth',
  hwaccels: 'HWAccels',
};

function elementOf(key: string): string {
  return ELEMENTS[key] ?? key.charAt(0).toUpperCase() + key.slice(1);
}

/** Name of the XML element that holds the property `key`. */
export function elementName(key: string, schema: TSchema & Annotations): string {
  return schema.xml ?? elementOf(key);
}

/** Every XML element name that the property `key` is read from, its own first. */
export function elementNames(key: string, schema: TSchema & Annotations): string[] {
  return [elementName(key, schema), ...(schema.aliases ?? []).map(elementOf)];
}

/**
 * `Server/VirtualHosts/VirtualHost[1]/Name`: where a path of keys stands in XML, positions
 * counted from 1.
 * @param root name of the element that `schema` describes
 */
export function elementPath(root: string, schema: TSchema, path: Path): string {
  let text = root;
  let at: Described | undefined = schema;
  for (const step of path) {
    if (typeof step === 'number') {
      const list: Described | undefined = at;
      text += `${list?.item === undefined ? '' : `/${list.item}`}[${step + 1}]`;
      at = list !== undefined && isListSchema(list) ? list.items : undefined;
    } else {
      at = at !== undefined && isObjectSchema(at) ? at.properties[step] : undefined;
      text += `/${at === undefined ? step : elementName(step, at)}`;
    }
  }
  return text;
}

/** `publishers.llhls.segmentCount`, `encodes.videos[0].codec`: a path as clients of the management API know it. */
export function keyPath(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? step : `${text}.${step}`;
  }, '');
}

/** `publishers.llhls.segmentCount: "x" is not an integer` */
export function problemText({ path, message }: Problem): string {
  return path.length === 0 ? message : `${keyPath(path)}: ${message}`;
}
