import { getSupportedRtpCapabilities } from 'mediasoup';
import type { types } from 'mediasoup';
import type { WebrtcPublisherConfig } from '../config/model.ts';

const MID = 'urn:ietf:params:rtp-hdrext:sdes:mid';
const SEND_TIME = 'http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time';
const TRANSPORT_CC = 'http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01';
const PLAYOUT_DELAY = 'http://www.webrtc.org/experiments/rtp-hdrext/playout-delay';

type Wanted = Pick<WebrtcPublisherConfig, 'bandwidthEstimation' | 'playoutDelay'>;

const all = getSupportedRtpCapabilities().headerExtensions ?? [];

/** Header extensions of packets to viewers, under the identifiers that mediasoup writes them with. */
export function senderExtensions({ bandwidthEstimation, playoutDelay }: Wanted): types.RtpHeaderExtension[] {
  const uris = new Set([MID]);
  if (bandwidthEstimation !== 'TransportCC') uris.add(SEND_TIME);
  if (bandwidthEstimation !== 'REMB') uris.add(TRANSPORT_CC);
  if (playoutDelay !== undefined) uris.add(PLAYOUT_DELAY);
  return all.filter(({ uri, direction }) => uris.has(uri) && direction === 'sendrecv');
}

const RECEIVED = new Set([
  MID,
  SEND_TIME,
  TRANSPORT_CC,
  'urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id',
  'urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id',
  'https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension',
]);

/** Header extensions of packets from publishers: what tells streams apart, and what their bandwidth estimation needs. */
export function receiverExtensions(kind: 'video' | 'audio'): types.RtpHeaderExtension[] {
  return all.filter(
    (extension) => extension.kind === kind && RECEIVED.has(extension.uri) && extension.direction !== 'sendonly',
  );
}

/** The extension with which packets ask for a playout delay. */
export function playoutDelayExtension(): types.RtpHeaderExtensionParameters {
  const { uri, preferredId } = all.find((extension) => extension.uri === PLAYOUT_DELAY) as types.RtpHeaderExtension;
  return { uri, id: preferredId };
}

/** How one end's packets are marked and the other end reports them. */
interface Reporting {
  readonly codecs: readonly { readonly rtcpFeedback?: readonly types.RtcpFeedback[] }[];
  readonly headerExtensions?: readonly { readonly uri: string }[];
}

/** Whether mediasoup can estimate from them what the way to a viewer carries. */
export function isEstimated({ codecs, headerExtensions = [] }: Reporting): boolean {
  const both = (extension: string, feedback: string) =>
    headerExtensions.some(({ uri }) => uri === extension) &&
    codecs.some(({ rtcpFeedback = [] }) => rtcpFeedback.some(({ type }) => type === feedback));
  return both(TRANSPORT_CC, 'transport-cc') || both(SEND_TIME, 'goog-remb');
}
