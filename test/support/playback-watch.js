// Loaded into a page with a player: how evenly the pictures of its video came, and what was missing.

/** Between two looks at what the player has in store, in milliseconds. */
const EVERY_MS = 100;

/** Counts from when it is called on. */
window.watchPlayback = () => {
  const video = document.querySelector('video');
  const seen = { gaps: [], holes: [], seeks: 0, widths: [], from: video.currentTime };
  window.playback = seen;
  let last;
  const shown = (now) => {
    if (last !== undefined) seen.gaps.push(now - last);
    last = now;
    if (seen.widths.at(-1) !== video.videoWidth) seen.widths.push(video.videoWidth);
    video.requestVideoFrameCallback(shown);
  };
  video.requestVideoFrameCallback(shown);
  video.addEventListener('seeking', () => seen.seeks++);
  setInterval(() => {
    const { buffered } = video;
    for (let i = 1; i < buffered.length; i++) {
      // what lies behind is of no concern any more
      if (buffered.start(i) < seen.from) continue;
      const hole = buffered.start(i) - buffered.end(i - 1);
      if (!seen.holes.includes(hole)) seen.holes.push(hole);
    }
  }, EVERY_MS);
};

/** What was counted: gaps between pictures in milliseconds, sorted, and seconds that were played. */
window.playbackSoFar = () => {
  const { currentTime } = document.querySelector('video');
  const { gaps, holes, seeks, widths, from } = window.playback;
  return { gaps: gaps.toSorted((one, other) => one - other), holes, seeks, widths, played: currentTime - from };
};
