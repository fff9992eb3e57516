import { counter, type Family } from './family.ts';

/** Alerts to the server of `<Alert>`. @param undelivered how many were given up so far */
export function alertFamilies(undelivered: () => number): Family[] {
  return [
    counter(
      'kiln_alerts_undelivered_total',
      'Alerts that the server of Alert/Url never got: it refused them, or was away while too many waited.',
      undelivered,
    ),
  ];
}
