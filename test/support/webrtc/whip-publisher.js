// Loaded into a page: a publisher of what this browser's fake camera and microphone take.

/**
 * Posts an offer and sends what is answered.
 * @param codec of the picture, such as `H264`: the first of the offer
 * @param encodings of a simulcast
 */
window.publishWhip = async (endpoint, { codec, encodings, width = 640, height = 360, behind = (sdp) => sdp } = {}) => {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true, video: { width, height, frameRate: 30 } });
  const connection = new RTCPeerConnection();
  window.publishing = connection;
  connection.addTransceiver(stream.getAudioTracks()[0], { direction: 'sendonly', streams: [stream] });
  const video = connection.addTransceiver(stream.getVideoTracks()[0], {
    direction: 'sendonly',
    streams: [stream],
    ...(encodings && { sendEncodings: encodings }),
  });
  // on a machine that is busy, too, the picture has the size that was asked for
  await video.sender.setParameters({ ...video.sender.getParameters(), degradationPreference: 'maintain-resolution' });
  if (codec !== undefined) {
    const { codecs } = RTCRtpSender.getCapabilities('video');
    const wanted = codecs.filter(({ mimeType }) => mimeType.toLowerCase() === `video/${codec.toLowerCase()}`);
    video.setCodecPreferences([...wanted, ...codecs.filter((other) => !wanted.includes(other))]);
  }
  await connection.setLocalDescription();
  const body = connection.localDescription.sdp;
  const response = await fetch(endpoint, { method: 'POST', headers: { 'content-type': 'application/sdp' }, body });
  if (response.status !== 201) throw new Error(await response.text());
  window.resource = new URL(response.headers.get('location'), endpoint).href;
  window.etag = response.headers.get('etag');
  await connection.setRemoteDescription({ type: 'answer', sdp: await behind(await response.text()) });
};

/** Mutes as pages do that go on to send: black, and silence. */
window.disable = (disabled) => {
  for (const { track } of window.publishing.getSenders()) track.enabled = !disabled;
};

const senderOf = (kind) =>
  window.publishing.getTransceivers().find(({ receiver }) => receiver.track.kind === kind).sender;
const away = {};

/** Mutes as pages do that send nothing. @param kinds `audio`, `video` */
window.sendNothing = async (...kinds) => {
  for (const kind of kinds) {
    const sender = senderOf(kind);
    away[kind] = sender.track;
    await sender.replaceTrack(null);
  }
};

/** Ends that. */
window.sendAgain = async (...kinds) => {
  for (const kind of kinds) await senderOf(kind).replaceTrack(away[kind]);
};

/** What `window.publishing` has sent, as its statistics tell. */
window.sent = async () => {
  const all = [...(await window.publishing.getStats()).values()];
  const video = all.filter(({ type, kind }) => type === 'outbound-rtp' && kind === 'video');
  const codec = all.find(({ id }) => id === video[0]?.codecId);
  return {
    codec: codec?.mimeType,
    layers: video.map(({ rid, frameWidth, framesSent, pliCount, nackCount }) => ({
      rid,
      frameWidth,
      framesSent,
      pliCount,
      nackCount,
    })),
  };
};

/** Restarts ICE as RFC 9725 section 4.3.3 tells. */
window.restartIce = async () => {
  const connection = window.publishing;
  connection.restartIce();
  const offer = await connection.createOffer({ iceRestart: true });
  await connection.setLocalDescription(offer);
  const take = (key) => new RegExp(`^a=${key}:(.*)$`, 'm').exec(connection.localDescription.sdp)[1].trim();
  const body = `a=ice-ufrag:${take('ice-ufrag')}\r\na=ice-pwd:${take('ice-pwd')}\r\n`;
  const response = await fetch(window.resource, {
    method: 'PATCH',
    body,
    headers: { 'content-type': 'application/trickle-ice-sdpfrag', 'if-match': '*' },
  });
  const fragment = await response.text();
  const told = (key) => new RegExp(`^a=${key}:(.*)$`, 'm').exec(fragment)[1].trim();
  const sdp = connection.remoteDescription.sdp
    .replace(/a=ice-ufrag:.*\r\n/g, `a=ice-ufrag:${told('ice-ufrag')}\r\n`)
    .replace(/a=ice-pwd:.*\r\n/g, `a=ice-pwd:${told('ice-pwd')}\r\n`);
  await connection.setRemoteDescription({ type: 'answer', sdp });
  return response.status;
};

/** Publishes by OvenLiveKit, as a page of its users does. */
window.publishOven = async (endpoint, config) => {
  const kit = window.OvenLiveKit.create({ callbacks: { error: (error) => (window.failure = String(error)) } });
  window.kit = kit;
  await kit.getUserMedia({ audio: true, video: { width: 640, height: 360 } });
  await kit.startStreaming(endpoint, config);
};
