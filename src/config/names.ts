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
  rtmpPull: 'RTMPPull',
  rtsp: 'RTSP',
  rtspPull: 'RTSPPull',
  udpPort: 'UDPPort',
  srt: 'SRT',
  srtla: 'SRTLA',
  srtPush: 'SRTPush',
  mpegts: 'MPEGTS',
  mpegtsPush: 'MPEGTSPush',
  ovt: 'OVT',
  webrtc: 'WebRTC',
  llhls: 'LLHLS',
  hls: 'HLS',
  flv: 'FLV',
  dvr: 'DVR',
  drm: 'DRM',
  jwt: 'JWT',
  jwksUrl: 'JWKSUrl',
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

export function elementName(key: string, schema: TSchema & Annotations): string {
  return schema.xml ?? elementOf(key);
}

/** XML element names that the property `key` is read from, its own first. */
export function elementNames(key: string, schema: TSchema & Annotations): string[] {
  return [elementName(key, schema), ...(schema.aliases ?? []).map(elementOf)];
}

/**
 * Path in XML for a path of keys, with positions from 1: `Server/VirtualHosts/VirtualHost[1]/Name`.
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

/** Path as clients of the management API know it: `publishers.llhls.segmentCount`, `encodes.videos[0].codec`. */
export function keyPath(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? step : `${text}.${step}`;
  }, '');
}

/** Example: `publishers.llhls.segmentCount: "x" is not an integer` */
export function problemText({ path, message }: Problem): string {
  return path.length === 0 ? message : `${keyPath(path)}: ${message}`;
}
