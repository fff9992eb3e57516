// Loaded into a page: a player (WHEP) and a publisher (WHIP) that go through the relay which the server names, and by no other way.

/** RFC 9725 section 4.6. */
window.iceServersOf = (link) =>
  [...link.matchAll(/<([^>]+)>; rel="ice-server"(?:; username="([^"]+)"; credential="([^"]+)")?/g)].map(
    ([, urls, username, credential]) => ({ urls, username, credential }),
  );

window.connectRelayed = async (connection, endpoint) => {
  window.connection = connection;
  const offer = await connection.createOffer();
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/sdp' },
    body: offer.sdp,
  });
  const answer = await response.text();
  if (response.status !== 201) throw new Error(answer);
  // candidates are gathered only now that it is known where from
  connection.setConfiguration({
    iceServers: window.iceServersOf(response.headers.get('link') ?? ''),
    iceTransportPolicy: 'relay',
  });
  await connection.setLocalDescription(offer);
  await connection.setRemoteDescription({ type: 'answer', sdp: answer });
};

window.playRelayed = async (endpoint) => {
  const connection = new RTCPeerConnection();
  const element = document.body.appendChild(document.createElement('video'));
  element.muted = true;
  element.srcObject = new MediaStream();
  connection.ontrack = ({ track }) => element.srcObject.addTrack(track);
  connection.addTransceiver('video', { direction: 'recvonly' });
  await window.connectRelayed(connection, endpoint);
  element.play().catch(() => undefined);
};

function movingTrack() {
  const canvas = document.body.appendChild(document.createElement('canvas'));
  const context = canvas.getContext('2d');
  let count = 0;
  setInterval(() => {
    context.fillStyle = `hsl(${count++ % 360}, 80%, 50%)`;
    context.fillRect(0, 0, canvas.width, canvas.height);
  }, 40);
  return canvas.captureStream(25).getVideoTracks()[0];
}

/** Has every connection that a page makes from now on go through relays alone. */
window.relayOnly = () => {
  const Connection = RTCPeerConnection;
  window.RTCPeerConnection = class extends Connection {
    constructor(configuration) {
      super({ ...configuration, iceTransportPolicy: 'relay' });
      window.connection = this;
    }
  };
};

/** Kiln's own player. */
window.playOwn = (url) => {
  const element = document.body.appendChild(document.createElement('video'));
  element.autoplay = element.muted = true;
  const player = new WhepPlayer(element, { failed: ({ reason }) => (window.failure = reason) }, []);
  void player.start(url, 0);
};

/** Kiln's own publisher. */
window.publishOwn = (url) =>
  new WhipSession(() => (window.failure = 'ended')).publish(url, new MediaStream([movingTrack()]), {
    maxBitrate: 500_000,
    contentHint: 'motion',
  });

/** The local candidate that media takes. */
window.way = async () => {
  const reports = [...(await window.connection.getStats()).values()];
  const pair = reports.find(
    ({ type, nominated, state }) => type === 'candidate-pair' && nominated && state === 'succeeded',
  );
  const local = reports.find(({ id }) => id === pair?.localCandidateId);
  return local && { type: local.candidateType, address: local.address, protocol: local.relayProtocol };
};

/** What a relay says to somebody who wants an address of it: the code of its refusal, or 0. */
window.allocate = (server) =>
  new Promise((resolve) => {
    const connection = new RTCPeerConnection({ iceServers: [server], iceTransportPolicy: 'relay' });
    connection.onicecandidate = ({ candidate }) => candidate?.type === 'relay' && resolve(0);
    connection.onicecandidateerror = ({ errorCode }) => resolve(errorCode);
    connection.createDataChannel('x');
    void connection.setLocalDescription();
  });
