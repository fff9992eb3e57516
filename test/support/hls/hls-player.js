// Loaded into a page with hls.js in front: players, and what a test asks of them.

/** What a busy machine makes, and the player itself when it leaves a rendition: the server has no part in it. */
const HARMLESS = /TimeOut|bufferStalledError|bufferSeekOverHole|bufferNudgeOnStall|^aborted$/;

/** What was there already, of a segment that is loaded behind its parts, is no gain; hls.js says so, and goes on. */
const isOwnDoing = ({ details, appendsWithoutProgress }) =>
  HARMLESS.test(details) || (details === 'bufferAppendNoProgress' && appendsWithoutProgress === 1);

/** Plays by hls.js alone. */
window.playHls = (url) => {
  const video = document.body.appendChild(document.createElement('video'));
  video.muted = true;
  video.autoplay = true;
  // a test has no time for the long memory that hls.js has of a line
  const hls = new window.Hls({
    lowLatencyMode: true,
    maxLiveSyncPlaybackRate: 2,
    abrEwmaFastLive: 1,
    abrEwmaSlowLive: 3,
  });
  watch(hls);
  hls.loadSource(url);
  hls.attachMedia(video);
};

/** Plays by OvenPlayer, which takes hls.js for LL-HLS. */
window.playOven = (file) => {
  const player = window.OvenPlayer.create('player', {
    autoStart: true,
    mute: true,
    hlsConfig: { lowLatencyMode: true, maxLiveSyncPlaybackRate: 2 },
    sources: [{ label: 'live', type: 'llhls', file }],
  });
  player.on('hlsPrepared', watch);
  player.on('error', (error) => window.faults.push(JSON.stringify(error)));
  player.on('qualityLevelChanged', (level) => (window.level = level));
  window.player = player;
};

window.faults = [];
window.watchHls = watch;

function watch(hls) {
  window.hls = hls;
  hls.on('hlsError', (_event, data) => {
    const { details, fatal, frag, response, reason } = data;
    if (fatal || !isOwnDoing(data))
      window.faults.push(`${details} ${fatal} ${frag?.relurl} ${response?.code} ${reason}`);
  });
}

/** The picture goes on in one of some widths. */
window.shows = (...widths) => {
  const video = document.querySelector('video');
  if (!widths.includes(video?.videoWidth)) {
    window.since = undefined;
    return false;
  }
  window.since ??= video.currentTime;
  return video.currentTime - window.since > 1;
};
