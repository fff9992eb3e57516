// Loaded into a page before its own scripts: stands in for WebRTC with a picture that is drawn here.

/** Each session that was offered, in order. `silent`: nothing comes any more. */
window.peers = [];

const canvas = document.createElement('canvas');
const context = canvas.getContext('2d');
let drawn = 0;
setInterval(() => {
  context.fillStyle = drawn++ % 2 === 0 ? 'black' : 'white';
  context.fillRect(0, 0, canvas.width, canvas.height);
}, 50);

window.RTCPeerConnection = class {
  silent = false;
  closed = false;
  packets = 0;
  #answered = false;

  constructor() {
    window.peers.push(this);
  }

  addTransceiver() {}

  getReceivers() {
    return [];
  }

  async createOffer() {
    return { type: 'offer', sdp: 'v=0\r\na=ice-ufrag:abcd\r\na=ice-pwd:efgh\r\n' };
  }

  async setLocalDescription(description) {
    this.localDescription = description;
  }

  async setRemoteDescription() {
    this.#answered = true;
    this.ontrack({ track: canvas.captureStream().getVideoTracks()[0] });
  }

  async getStats() {
    if (this.#answered && !this.silent) this.packets++;
    const video = { type: 'inbound-rtp', kind: 'video', packetsReceived: this.packets, bytesReceived: 0, timestamp: 0 };
    return new Map([['video', video]]);
  }

  close() {
    this.closed = true;
  }
};
