import { SilenceWatch } from './silence.js';

const OFFER_TIMEOUT_MS = { most: 10_000, again: 2500 };
const SHORT_ATTEMPTS = 4;
/** How often it is looked whether media came. */
const LISTEN_EVERY_MS = 250;
/** A server that has not said by then that it still has the session is gone. */
const CONFIRM_TIMEOUT_MS = 1000;
const FRAGMENT_TYPE = 'application/trickle-ice-sdpfrag';
const LOST = { reason: 'Reconnecting', final: false };
/**
 * The identifiers under which the server writes header extensions. It answers those that are offered so, and only with
 * them can it tell what the network carries and choose the rendition by it.
 */
const IDENTIFIERS = new Map([
  ['urn:ietf:params:rtp-hdrext:sdes:mid', 1],
  ['http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time', 4],
  ['http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01', 5],
]);

/**
 * A stream that is starting may take a while. A node that has died keeps those who come back waiting, until balancers have
 * noticed; a node that all of them come to may be slow to answer.
 * @param attempt since it played last; 0 where it has not played yet
 * @returns milliseconds
 */
export function offerTimeout(attempt) {
  return attempt > 0 && attempt <= SHORT_ATTEMPTS ? OFFER_TIMEOUT_MS.again : OFFER_TIMEOUT_MS.most;
}

/**
 * Plays a WHEP resource in a video element (WebRTC). It ends when the server closes DTLS, and when no media comes and no
 * node says that it still has the session.
 * `failed({ reason, final })` is called once at most; nothing plays after it.
 */
export class WhepPlayer {
  #video;
  #failed;
  #peer;
  #session;
  #closed = false;
  #abort = new AbortController();
  #listening;
  #last;
  /** Frames since the last reading, and the milliseconds from when they were received to when they are on the screen. */
  #shown = { frames: 0, delay: 0 };

  constructor(video, failed) {
    this.#video = video;
    this.#failed = failed;
  }

  /** @param attempt since it played last; 0 where it has not played yet */
  async start(url, attempt) {
    if (typeof RTCPeerConnection === 'undefined') {
      this.#fail({ reason: 'This browser has no WebRTC', final: true });
      return;
    }
    addEventListener('pagehide', () => this.close(), { signal: this.#abort.signal });
    try {
      await this.#connect(url, offerTimeout(attempt));
    } catch (error) {
      this.#fail(error instanceof Refusal ? error : { reason: 'The server cannot be reached', final: false });
    }
  }

  /** Latency in seconds, bitrate in bit/s, frames and when they were counted (ms); what is not known is undefined. */
  async stats() {
    return {
      latencyMeaning:
        'Half the round trip to the server, plus the time from a frame coming here to this screen showing it',
      ...(this.#peer && this.#read(await this.#peer.getStats())),
    };
  }

  catchUp() {}

  close() {
    if (this.#closed) return;
    this.#closed = true;
    this.#abort.abort();
    clearInterval(this.#listening);
    this.#peer?.close();
    this.#video.srcObject = null;
    if (this.#session !== undefined) fetch(this.#session, { method: 'DELETE', keepalive: true }).catch(() => undefined);
  }

  async #connect(url, timeoutMs) {
    const peer = new RTCPeerConnection();
    this.#peer = peer;
    this.#watchFrames();
    const stream = new MediaStream();
    peer.ontrack = ({ track }) => {
      stream.addTrack(track);
      this.#video.srcObject = stream;
    };
    peer.onconnectionstatechange = () => {
      if (peer.connectionState === 'failed') {
        this.#fail({ reason: 'No WebRTC connection could be made: a firewall may block UDP and TCP', final: false });
      }
    };
    peer.addTransceiver('video', { direction: 'recvonly' });
    peer.addTransceiver('audio', { direction: 'recvonly' });
    const offer = await peer.createOffer();
    // Without it browsers decode Opus to one channel.
    offer.sdp = offer.sdp.replaceAll('useinbandfec=1', 'useinbandfec=1;stereo=1');
    const sdp = identified(offer.sdp);
    // a browser that has none of it changed plays as well, and is sent the first rendition
    const body = await peer.setLocalDescription({ type: 'offer', sdp }).then(
      () => sdp,
      () => peer.setLocalDescription(offer).then(() => offer.sdp),
    );
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/sdp' },
      body,
      signal: AbortSignal.any([this.#abort.signal, AbortSignal.timeout(timeoutMs)]),
    });
    if (response.status !== 201) throw new Refusal(response.status);
    const location = response.headers.get('location');
    if (location !== null) this.#session = new URL(location, response.url);
    const answer = await response.text();
    if (this.#closed) return;
    await peer.setRemoteDescription({ type: 'answer', sdp: answer });
    const dtls = peer.getReceivers()[0]?.transport;
    dtls?.addEventListener('statechange', () => dtls.state === 'closed' && this.#fail(LOST));
    this.#listen(peer);
  }

  #listen(peer) {
    if (this.#closed) return;
    const silence = new SilenceWatch(performance.now());
    let busy = false;
    this.#listening = setInterval(async () => {
      if (busy) return;
      busy = true;
      try {
        const isSuspect = silence.heard(receivedBy(await peer.getStats()), performance.now());
        if (isSuspect && !this.#closed) {
          if (await this.#isKnown(peer)) silence.explained(performance.now());
          else this.#fail(LOST);
        }
      } finally {
        busy = false;
      }
    }, LISTEN_EVERY_MS);
  }

  /** Whether a node says that it has the session: it is sent a candidate exchange that changes nothing (RFC 9725, 4.3.1). */
  async #isKnown(peer) {
    if (this.#session === undefined) return true;
    const body = peer.localDescription.sdp
      .match(/^a=ice-(?:ufrag|pwd):.*\r\n/gm)
      .slice(0, 2)
      .join('');
    const signal = AbortSignal.any([this.#abort.signal, AbortSignal.timeout(CONFIRM_TIMEOUT_MS)]);
    const headers = { 'content-type': FRAGMENT_TYPE, 'if-match': '*' };
    try {
      return (await fetch(this.#session, { method: 'PATCH', headers, body, signal })).ok;
    } catch {
      return false;
    }
  }

  #fail({ reason, final }) {
    if (this.#closed) return;
    this.close();
    this.#failed({ reason, final });
  }

  #watchFrames() {
    this.#video.requestVideoFrameCallback?.((_now, { receiveTime, expectedDisplayTime }) => {
      if (this.#closed) return;
      if (receiveTime !== undefined) {
        this.#shown.frames++;
        this.#shown.delay += expectedDisplayTime - receiveTime;
      }
      this.#watchFrames();
    });
  }

  #read(report) {
    let video;
    let bytes = 0;
    let rtt;
    for (const entry of report.values()) {
      if (entry.type === 'inbound-rtp') {
        bytes += entry.bytesReceived;
        if (entry.kind === 'video') video = entry;
      }
      if (entry.type === 'candidate-pair' && entry.nominated) rtt = entry.currentRoundTripTime ?? rtt;
    }
    if (video === undefined) return undefined;
    const now = { at: video.timestamp, bytes, delay: delayOf(video), frames: video.framesDecoded };
    const last = this.#last;
    this.#last = now;
    const shown = this.#shown;
    this.#shown = { frames: 0, delay: 0 };
    const counted = { at: now.at, frames: now.frames, dropped: video.framesDropped };
    if (last === undefined || now.at <= last.at) return counted;
    const frames = now.frames - last.frames;
    let held;
    if (shown.frames > 0) held = shown.delay / shown.frames / 1000;
    else if (frames > 0) held = (now.delay - last.delay) / frames;
    return {
      ...counted,
      latency: rtt === undefined || held === undefined ? undefined : rtt / 2 + held,
      bitrate: ((now.bytes - last.bytes) * 8000) / (now.at - last.at),
    };
  }
}

/** Packets of media so far. RTCP and checks of the way (ICE) count for nothing: they go on while a server stands still. */
function receivedBy(report) {
  let received = 0;
  for (const entry of report.values()) if (entry.type === 'inbound-rtp') received += entry.packetsReceived;
  return received;
}

/** An offer with the server's identifiers for its extensions, and others for the rest. */
function identified(sdp) {
  const given = new Map(IDENTIFIERS);
  const free = [2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14];
  return sdp.replace(/^a=extmap:\d+(\S*) (\S+).*\r\n/gm, (_, direction, uri) => {
    if (!given.has(uri)) given.set(uri, free.shift());
    const id = given.get(uri);
    return id === undefined ? '' : `a=extmap:${id}${direction} ${uri}\r\n`;
  });
}

/** Seconds that all frames so far spent in this browser, from the first packet to the decoded picture. */
function delayOf(video) {
  return video.totalProcessingDelay ?? (video.jitterBufferDelay ?? 0) + (video.totalDecodeTime ?? 0);
}

const REFUSALS = {
  401: { reason: 'You are not allowed to watch this stream', final: true },
  403: { reason: 'You are not allowed to watch this stream', final: true },
  404: { reason: undefined, final: false },
  406: { reason: 'This browser and this stream have no codec in common for WebRTC', final: true },
  409: { reason: undefined, final: false },
  503: { reason: 'The server is full', final: false },
};

class Refusal extends Error {
  constructor(status) {
    super(`status ${status}`);
    const { reason, final } = REFUSALS[status] ?? { reason: `The server refused WebRTC (${status})`, final: false };
    this.reason = reason;
    this.final = final;
  }
}
