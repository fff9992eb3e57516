import type * as real from '../../../cluster/identity.ts';
import { World } from './world.ts';

/** Stands in for `cluster/identity.ts`: names come from the world, so that they are the same for the same seed. */
export const incarnate: typeof real.incarnate = (id) => ({ id, incarnation: World.here.newName(id) });

export const newToken: typeof real.newToken = () => World.here.newName('token');
