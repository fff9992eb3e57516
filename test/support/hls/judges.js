// Loaded into a page behind a player: each of these plays a URL with the player as it comes, and `play` watches.

/** What ends playback; what a player gets over by itself is in `notes`. */
window.faults = [];
window.notes = [];

const muted = (name) => {
  const element = document.body.appendChild(document.createElement(name));
  element.muted = true;
  element.autoplay = true;
  return element;
};

const PLAYERS = {
  hls(url, config) {
    const hls = (window.hls = new window.Hls(config));
    hls.on('hlsError', (_event, { details, fatal, reason }) =>
      (fatal ? window.faults : window.notes).push(`${details} ${reason ?? ''}`),
    );
    hls.loadSource(url);
    hls.attachMedia(muted('video'));
  },

  ovenplayer(url) {
    document.body.appendChild(document.createElement('div')).id = 'player';
    const type = url.startsWith('ws') ? 'webrtc' : 'llhls';
    const sources = [{ label: 'live', type, file: url }];
    const player = (window.ovenPlayer = window.OvenPlayer.create('player', { autoStart: true, mute: true, sources }));
    player.on('error', (error) => window.faults.push(JSON.stringify(error)));
  },

  videojs(url, vhs) {
    const player = (window.vhsPlayer = window.videojs(muted('video-js'), {
      muted: true,
      autoplay: true,
      ...(vhs && { html5: { vhs } }),
    }));
    player.on('error', () => window.faults.push(JSON.stringify(player.error())));
    player.src({ src: url, type: 'application/x-mpegURL' });
  },

  async shaka(url, { drm, ...streaming } = {}) {
    const { shaka } = window;
    shaka.polyfill.installAll();
    const player = (window.shakaPlayer = new shaka.Player());
    const { CRITICAL } = shaka.util.Error.Severity;
    const { NETWORK } = shaka.util.Error.Category;
    const note = ({ code, severity, category, data = [] }) => {
      // what could not be fetched of a live stream it tries again
      const fatal = severity === CRITICAL && category !== NETWORK;
      (fatal ? window.faults : window.notes).push(`${code} ${data.slice(0, 2).join(' ')}`);
    };
    player.addEventListener('error', ({ detail }) => note(detail));
    await player.attach(muted('video'));
    // a machine that is busy drops frames: Shaka then changes the rendition, and may append its media before its init
    player.configure({ streaming, ...(drm && { drm }), abr: { droppedFrames: false } });
    try {
      await player.load(url);
    } catch (error) {
      window.faults.push(`load: ${error.code} ${error.message}`);
    }
  },
};

/** Between two looks at a picture, in milliseconds. */
const LOOK_MS = 100;

/** Seconds that were played since `watch` began anew, and the longest time without any, in milliseconds. */
window.played = 0;
window.longestStall = 0;
let at;
let movedAt;

/** Counts from now on. */
window.watch = () => {
  window.played = 0;
  window.longestStall = 0;
  movedAt = undefined;
};

setInterval(() => {
  const video = document.querySelector('video');
  if (!video) return;
  const moved = video.currentTime - (at ?? video.currentTime);
  at = video.currentTime;
  // a jump to where the stream is by now is not playing
  if (moved > 0 && moved < 1.5 && video.videoWidth > 0) {
    window.played += moved;
    movedAt = performance.now();
  } else if (movedAt !== undefined) window.longestStall = Math.max(window.longestStall, performance.now() - movedAt);
}, LOOK_MS);

/** @param config of the player, where it is not to be as it comes */
window.play = (player, url, config) => void PLAYERS[player](url, config);
