import { hedged } from './hedged.js';
import { useIceServers } from './ice-servers.js';

/** A server that has not confirmed a session by then is gone. */
const CONFIRM_TIMEOUT_MS = 1000;
const END_TIMEOUT_MS = 2500;
const FRAGMENT_TYPE = 'application/trickle-ice-sdpfrag';
/**
 * Identifiers that the server uses for header extensions. It answers only these, and needs the extensions to estimate the
 * bandwidth and choose the rendition by it.
 */
const IDENTIFIERS = new Map([
  ['urn:ietf:params:rtp-hdrext:sdes:mid', 1],
  ['http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time', 4],
  ['http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01', 5],
]);

/** Whether this browser sets an offer with other identifiers than its own; one that does not gets the first rendition. */
let takesIdentifiers = true;

/**
 * Reason why nothing plays, for the viewer; `final`: trying again is of no use.
 * @typedef {{ reason: string | undefined, final: boolean }} Failure
 */

/** A session of a viewer (draft-ietf-wish-whep), requested by `offer`, and started by `begin`. */
export class WhepSession {
  #peer = new RTCPeerConnection();
  #stream = new MediaStream();
  #closed = false;
  #closing = new AbortController();
  /** @type {URL | undefined} */
  #url;
  /** @type {{ type: 'offer', sdp: string } | undefined} */
  #offer;
  #answer = '';
  #answerHeaders = new Headers();

  /** @param {((message: unknown) => void) | undefined} heard called with each message of the data channel, which is not asked for without */
  constructor(heard) {
    if (heard === undefined) return;
    // this id is agreed without a word (docs/events.md)
    const channel = this.#peer.createDataChannel('events', { negotiated: true, id: 0 });
    channel.onmessage = ({ data }) => this.#closed || heard(data);
  }

  /**
   * Requests the session; where no node answers at first, also from others. Sessions granted besides are ended at once.
   * @param {string} url
   * @param {{ timeoutMs: number, pauses: readonly number[] }} terms `pauses` as those of `hedged`
   * @throws {Refusal} TypeError and TimeoutError where no node answers
   */
  async offer(url, { timeoutMs, pauses }) {
    const { sdp: body } = (this.#offer = await this.#describe());
    if (this.#closed) return;
    const ask = () =>
      fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/sdp' },
        body,
        signal: AbortSignal.timeout(timeoutMs),
      });
    const response = await hedged(ask, pauses, (late) => endSession(locationOf(late)));
    if (response.status !== 201) throw new Refusal(response.status);
    this.#url = locationOf(response);
    // only now is there a session to end
    if (this.#closed) endSession(this.#url);
    this.#answerHeaders = response.headers;
    this.#answer = await response.text();
  }

  /**
   * Receives the media of the session.
   * @param {(stream: MediaStream) => void} receives called with the stream as soon as it has a track
   * @param {(failure: Failure) => void} ended called when no media can come any more
   */
  async begin(receives, ended) {
    if (this.#closed) return;
    const peer = this.#peer;
    // a browser may report an end that `close` causes
    /** @param {Failure} failure */
    const end = (failure) => this.#closed || ended(failure);
    peer.ontrack = ({ track }) => {
      this.#stream.addTrack(track);
      receives(this.#stream);
    };
    peer.onconnectionstatechange = () => {
      if (peer.connectionState === 'failed') {
        end({ reason: 'No WebRTC connection could be made: a firewall may block UDP and TCP', final: false });
      }
    };
    useIceServers(peer, this.#answerHeaders);
    await this.#setOffer();
    await peer.setRemoteDescription({ type: 'answer', sdp: this.#answer });
    const dtls = peer.getReceivers()[0]?.transport;
    dtls?.addEventListener('statechange', () => dtls.state === 'closed' && end(LOST));
  }

  /** Statistics of the browser. */
  report() {
    return this.#peer.getStats();
  }

  /** Number of media packets so far, without RTCP and ICE checks, which continue while no media comes. */
  async received() {
    let received = 0;
    for (const entry of (await this.report()).values())
      if (entry.type === 'inbound-rtp') received += entry.packetsReceived;
    return received;
  }

  /** Asks whether a node has the session, by a candidate exchange that changes nothing (RFC 9725, 4.3.1). */
  async isKnown() {
    if (this.#url === undefined) return true;
    const credentials = this.#offer?.sdp.match(/^a=ice-(?:ufrag|pwd):.*\r\n/gm) ?? [];
    const body = credentials.slice(0, 2).join('');
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(CONFIRM_TIMEOUT_MS)]);
    const headers = { 'content-type': FRAGMENT_TYPE, 'if-match': '*' };
    try {
      return (await fetch(this.#url, { method: 'PATCH', headers, body, signal })).ok;
    } catch {
      return false;
    }
  }

  /** Ends the session, also one that is granted later. Idempotent. */
  close() {
    if (this.#closed) return;
    this.#closed = true;
    this.#closing.abort();
    this.#peer.close();
    endSession(this.#url);
  }

  /** @returns {Promise<{ type: 'offer', sdp: string }>} */
  async #describe() {
    const peer = this.#peer;
    peer.addTransceiver('video', { direction: 'recvonly' });
    peer.addTransceiver('audio', { direction: 'recvonly' });
    const offer = await peer.createOffer();
    // Without it browsers decode Opus to one channel.
    const sdp = (offer.sdp ?? '').replaceAll('useinbandfec=1', 'useinbandfec=1;stereo=1');
    return { type: 'offer', sdp: takesIdentifiers ? identified(sdp) : sdp };
  }

  /** Sets the local description after the answer, which names ICE servers: browsers gather candidates from here on. */
  async #setOffer() {
    try {
      await this.#peer.setLocalDescription(this.#offer);
    } catch (error) {
      if (!takesIdentifiers) throw error;
      // the answer is to the changed offer, and the next session makes another one
      takesIdentifiers = false;
      throw LOST;
    }
  }
}

/**
 * Ends a player whose server is gone.
 * @type {Failure}
 */
export const LOST = { reason: 'The connection to the server was lost', final: false };

/**
 * URL of the session that an answer grants.
 * @param {Response} response
 */
function locationOf(response) {
  const location = response.status === 201 ? response.headers.get('location') : null;
  return location === null ? undefined : new URL(location, response.url);
}

/**
 * Ends a session at its node. A node that is gone detects the end by itself.
 * @param {URL | undefined} url
 */
function endSession(url) {
  if (url === undefined) return;
  fetch(url, { method: 'DELETE', keepalive: true, signal: AbortSignal.timeout(END_TIMEOUT_MS) }).catch(() => undefined);
}

/**
 * Rewrites an offer to use the server's identifiers for its extensions, and others for the rest.
 * @param {string} sdp
 */
function identified(sdp) {
  const given = new Map(IDENTIFIERS);
  const free = [2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14];
  return sdp.replace(/^a=extmap:\d+(\S*) (\S+).*\r\n/gm, (_, direction, uri) => {
    const id = given.get(uri) ?? free.shift();
    if (id === undefined) return '';
    given.set(uri, id);
    return `a=extmap:${id}${direction} ${uri}\r\n`;
  });
}

/** @type {Readonly<Record<number, Failure>>} */
const REFUSALS = {
  401: { reason: 'You are not allowed to watch this stream', final: true },
  403: { reason: 'You are not allowed to watch this stream', final: true },
  404: { reason: undefined, final: false },
  406: { reason: 'This browser and this stream have no codec in common for WebRTC', final: true },
  409: { reason: undefined, final: false },
  503: { reason: 'The server cannot play this stream now', final: false },
};

/** An answer that grants no session, and its `Failure`. */
export class Refusal extends Error {
  reason;
  final;

  /** @param {number} status */
  constructor(status) {
    super(`status ${status}`);
    const { reason, final } = REFUSALS[status] ?? { reason: `The server refused WebRTC (${status})`, final: false };
    this.reason = reason;
    this.final = final;
  }
}
