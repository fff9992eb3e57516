/** Hand-made SDP offers, for what no real client sends on purpose. */
export interface OfferedMedia {
  readonly kind: string;
  readonly types: readonly (string | number)[];
  readonly lines?: readonly string[];
  readonly direction?: string;
  readonly port?: number;
  readonly protocol?: string;
}

const FINGERPRINT = Array.from({ length: 32 }, (_, i) => i.toString(16).padStart(2, '0').toUpperCase()).join(':');

export const TRANSPORT = [
  'a=ice-ufrag:abcd',
  'a=ice-pwd:0123456789012345678901',
  `a=fingerprint:sha-256 ${FINGERPRINT}`,
  'a=setup:actpass',
];

export function offerOf(
  media: readonly OfferedMedia[],
  transport: readonly string[] = TRANSPORT,
  bundle = media.map((_, index) => index),
): string {
  const sections = media.flatMap(
    ({ kind, types, lines = [], direction = 'recvonly', port = 9, protocol = 'UDP/TLS/RTP/SAVPF' }, index) => [
      `m=${kind} ${port} ${protocol} ${types.join(' ')}`,
      'c=IN IP4 0.0.0.0',
      ...transport,
      `a=mid:${index}`,
      `a=${direction}`,
      'a=rtcp-mux',
      ...lines,
    ],
  );
  const group = bundle.length > 0 ? [`a=group:BUNDLE ${bundle.join(' ')}`] : [];
  return ['v=0', 'o=- 1 2 IN IP4 127.0.0.1', 's=-', 't=0 0', ...group, ...sections, ''].join('\r\n');
}

export const H264_VIDEO: OfferedMedia = {
  kind: 'video',
  types: [108],
  lines: [
    'a=rtpmap:108 H264/90000',
    'a=fmtp:108 packetization-mode=1;profile-level-id=42e01f;level-asymmetry-allowed=1',
  ],
};

export const OPUS_AUDIO: OfferedMedia = { kind: 'audio', types: [111], lines: ['a=rtpmap:111 opus/48000/2'] };
