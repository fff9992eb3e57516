import type { types } from 'mediasoup';
import type { WebrtcPublisherConfig } from '../config/model.ts';

const MID = 'urn:ietf:params:rtp-hdrext:sdes:mid';
const SEND_TIME = 'http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time';
const TRANSPORT_CC = 'http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01';
const RID = 'urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id';
const REPAIRED_RID = 'urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id';
const DEPENDENCIES = 'https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension';
const PLAYOUT_DELAY = 'http://www.webrtc.org/experiments/rtp-hdrext/playout-delay';

type Wanted = Pick<WebrtcPublisherConfig, 'bandwidthEstimation' | 'playoutDelay'>;

/** mediasoup's header extensions as far as they are used, with its identifiers and in its order. A start does without its code. */
const ALL: readonly types.RtpHeaderExtension[] = [
  row('audio', MID, 1, 'sendrecv'),
  row('video', MID, 1, 'sendrecv'),
  row('video', RID, 2, 'recvonly'),
  row('video', REPAIRED_RID, 3, 'recvonly'),
  row('audio', SEND_TIME, 4, 'sendrecv'),
  row('video', SEND_TIME, 4, 'sendrecv'),
  row('audio', TRANSPORT_CC, 5, 'recvonly'),
  row('video', TRANSPORT_CC, 5, 'sendrecv'),
  row('video', DEPENDENCIES, 7, 'recvonly'),
  row('audio', PLAYOUT_DELAY, 11, 'sendrecv'),
  row('video', PLAYOUT_DELAY, 11, 'sendrecv'),
];

/** Header extensions of packets to viewers, with mediasoup's identifiers. */
export function senderExtensions({ bandwidthEstimation, playoutDelay }: Wanted): types.RtpHeaderExtension[] {
  const uris = new Set([MID]);
  if (bandwidthEstimation !== 'TransportCC') uris.add(SEND_TIME);
  if (bandwidthEstimation !== 'REMB') uris.add(TRANSPORT_CC);
  if (playoutDelay !== undefined) uris.add(PLAYOUT_DELAY);
  return ALL.filter(({ uri, direction }) => uris.has(uri) && direction === 'sendrecv');
}

const RECEIVED = new Set([MID, SEND_TIME, TRANSPORT_CC, RID, REPAIRED_RID, DEPENDENCIES]);

/** Header extensions of packets from publishers: identification of streams, and bandwidth estimation. */
export function receiverExtensions(kind: 'video' | 'audio'): types.RtpHeaderExtension[] {
  return ALL.filter(
    (extension) => extension.kind === kind && RECEIVED.has(extension.uri) && extension.direction !== 'sendonly',
  );
}

/** Playout delay extension, with mediasoup's identifier. */
export function playoutDelayExtension(): types.RtpHeaderExtensionParameters {
  const { uri, preferredId } = ALL.find((extension) => extension.uri === PLAYOUT_DELAY) as types.RtpHeaderExtension;
  return { uri, id: preferredId };
}

/** Header extensions and RTCP feedback that bandwidth estimation depends on. */
interface Reporting {
  readonly codecs: readonly { readonly rtcpFeedback?: readonly types.RtcpFeedback[] }[];
  readonly headerExtensions?: readonly { readonly uri: string }[];
}

/** Whether mediasoup can estimate the bandwidth to a viewer: an extension needs its matching feedback. */
export function isEstimated({ codecs, headerExtensions = [] }: Reporting): boolean {
  const both = (extension: string, feedback: string) =>
    headerExtensions.some(({ uri }) => uri === extension) &&
    codecs.some(({ rtcpFeedback = [] }) => rtcpFeedback.some(({ type }) => type === feedback));
  return both(TRANSPORT_CC, 'transport-cc') || both(SEND_TIME, 'goog-remb');
}

function row(
  kind: types.MediaKind,
  uri: types.RtpHeaderExtensionUri,
  preferredId: number,
  direction: types.RtpHeaderExtensionDirection,
): types.RtpHeaderExtension {
  return { kind, uri, preferredId, preferredEncrypt: false, direction };
}
