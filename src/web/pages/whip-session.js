import { useIceServers } from './ice-servers.js';

const ANSWER_MS = 10_000;
const END_MS = 2500;

/** An answer of the server that grants no session, with its own text. */
export class Refused extends Error {
  status;

  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message || `The server answered ${status}`);
    this.status = status;
  }

  /** Whether the same request may succeed in a moment: the session before it may not be over yet. */
  get mayPass() {
    return this.status === 409 || this.status === 429 || this.status >= 500;
  }
}

/** A session of a publisher by WHIP (RFC 9725). */
export class WhipSession {
  #peer = new RTCPeerConnection();
  #closed = false;
  /** @type {URL | undefined} */
  #url;
  #ended;

  /** @param {() => void} ended called once when the connection is lost, but not by `close` */
  constructor(ended) {
    this.#ended = ended;
  }

  /**
   * Offers the tracks and sends them as soon as the server has answered.
   * @param {string} url
   * @param {MediaStream} media at most one track of each kind
   * @param {{ maxBitrate: number, contentHint: string }} options of the video
   * @throws {Refused} TypeError and TimeoutError where no server answers
   */
  async publish(url, media, { maxBitrate, contentHint }) {
    const peer = this.#peer;
    for (const track of media.getTracks()) {
      if (track.kind === 'video') track.contentHint = contentHint;
      const sendEncodings = track.kind === 'video' ? [{ maxBitrate }] : undefined;
      const transceiver = peer.addTransceiver(track, {
        direction: 'sendonly',
        streams: [media],
        ...(sendEncodings && { sendEncodings }),
      });
      if (track.kind === 'video') preferH264(transceiver);
    }
    peer.addEventListener('connectionstatechange', () => {
      if (peer.connectionState === 'failed') this.#lose();
    });
    const offer = await peer.createOffer();
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/sdp' },
      body: offer.sdp ?? '',
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const text = await response.text();
    if (response.status !== 201) throw new Refused(response.status, text);
    this.#url = new URL(response.headers.get('location') ?? '', response.url);
    // only now is there a session to end
    if (this.#closed) return endSession(this.#url);
    useIceServers(peer, response.headers);
    await peer.setLocalDescription(offer);
    await peer.setRemoteDescription({ type: 'answer', sdp: text });
    const dtls = peer.getSenders()[0]?.transport;
    dtls?.addEventListener('statechange', () => dtls.state === 'closed' && this.#lose());
  }

  /**
   * Sends another track instead of the one of its kind.
   * @param {MediaStreamTrack} track
   * @param {number} maxBitrate of video
   */
  async replace(track, maxBitrate) {
    const sender = this.#peer.getSenders().find((one) => one.track?.kind === track.kind);
    if (!sender?.track) return;
    track.contentHint = sender.track.contentHint;
    await sender.replaceTrack(track);
    if (track.kind !== 'video') return;
    const parameters = sender.getParameters();
    for (const encoding of parameters.encodings) encoding.maxBitrate = maxBitrate;
    await sender.setParameters(parameters);
  }

  /** Statistics of the browser. */
  report() {
    return this.#peer.getStats();
  }

  /** Ends the session at the server too. Idempotent. */
  close() {
    if (this.#closed) return;
    this.#closed = true;
    this.#peer.close();
    if (this.#url !== undefined) endSession(this.#url);
  }

  #lose() {
    if (this.#closed) return;
    this.close();
    this.#ended();
  }
}

/**
 * Prefers H.264 to VP8, which browsers prefer and players by HLS do not have.
 * @param {RTCRtpTransceiver} transceiver
 */
function preferH264(transceiver) {
  const { codecs = [] } = RTCRtpSender.getCapabilities('video') ?? {};
  /** @param {RTCRtpCodec} codec */
  const isH264 = ({ mimeType }) => mimeType.toLowerCase() === 'video/h264';
  transceiver.setCodecPreferences?.([...codecs.filter(isH264), ...codecs.filter((codec) => !isH264(codec))]);
}

/**
 * Ends a session at its server. A server that is gone detects the end by itself.
 * @param {URL} url
 */
function endSession(url) {
  fetch(url, { method: 'DELETE', keepalive: true, signal: AbortSignal.timeout(END_MS) }).catch(() => undefined);
}
