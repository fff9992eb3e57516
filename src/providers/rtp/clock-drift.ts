/**
 * Alert about a source whose clocks run at different rates, which its sender reports do not say.
 * @param share of the time by which the clock of the audio is slower
 * @returns code and text of an alert
 */
export function clockDrift(share: number): [code: string, description: string] {
  const percent = (Math.abs(share) * 100).toFixed(1);
  return [
    'INGRESS_CLOCK_DRIFT',
    `The timestamps of the ingress stream's audio run ${percent} % ${share > 0 ? 'slower' : 'faster'} than those of its video, and no RTCP sender reports tell so. The video follows the audio by their arrival, with up to half a second between them`,
  ];
}
