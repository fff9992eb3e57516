// Loaded into a page: a WHEP player, and what any player's connection has received.

/** Messages of the data channel. */
window.events = [];

/** Posts an offer, with a data channel where `asks` says so, and plays the answer, which `behind` may change. */
window.playWhep = async (endpoint, behind = (sdp) => sdp, asks = false) => {
  const connection = new RTCPeerConnection();
  window.connection = connection;
  const element = document.body.appendChild(document.createElement('video'));
  element.srcObject = new MediaStream();
  connection.ontrack = ({ track }) => element.srcObject.addTrack(track);
  connection.addTransceiver('audio', { direction: 'recvonly' });
  connection.addTransceiver('video', { direction: 'recvonly' });
  if (asks) {
    const channel = connection.createDataChannel('events', { negotiated: true, id: 0 });
    channel.onmessage = ({ data }) => window.events.push(data);
  }
  await connection.setLocalDescription();
  const body = connection.localDescription.sdp;
  const response = await fetch(endpoint, { method: 'POST', headers: { 'content-type': 'application/sdp' }, body });
  if (response.status !== 201) throw new Error(await response.text());
  await connection.setRemoteDescription({ type: 'answer', sdp: await behind(await response.text()) });
  await element.play();
};

/** Mean luma of the picture that is shown, 0 to 255. */
window.brightness = () => {
  const canvas = new OffscreenCanvas(16, 9).getContext('2d');
  canvas.drawImage(document.querySelector('video'), 0, 0, 16, 9);
  const { data } = canvas.getImageData(0, 0, 16, 9);
  let sum = 0;
  for (let at = 0; at < data.length; at += 4) sum += 0.299 * data[at] + 0.587 * data[at + 1] + 0.114 * data[at + 2];
  return sum / (data.length / 4);
};

/** Counts of `window.connection`, as its statistics tell them. */
window.received = async () => {
  const counts = { frames: 0, width: 0, audioEnergy: 0, audioCodec: '', audioSamples: 0, freezes: 0, lost: 0 };
  if (window.connection === undefined) return counts;
  const reports = await window.connection.getStats();
  for (const report of reports.values()) {
    if (report.type !== 'inbound-rtp') continue;
    counts.lost += report.packetsLost;
    if (report.kind === 'audio') {
      counts.audioEnergy = report.totalAudioEnergy;
      counts.audioCodec = reports.get(report.codecId)?.mimeType ?? '';
      counts.audioSamples = report.totalSamplesReceived - report.concealedSamples;
    } else
      Object.assign(counts, { frames: report.framesDecoded, width: report.frameWidth, freezes: report.freezeCount });
  }
  return counts;
};

/** Plays by OvenPlayer, as a page of its users does. */
window.playOven = (file) => {
  const player = window.OvenPlayer.create('player', {
    autoStart: true,
    mute: false,
    sources: [{ label: 'live', type: 'webrtc', file }],
  });
  player.on('peerConnectionPrepared', (connection) => (window.connection = connection));
  player.on('error', (error) => (window.failure = JSON.stringify(error)));
  player.on('qualityLevelChanged', (level) => (window.level = level));
  window.player = player;
};
