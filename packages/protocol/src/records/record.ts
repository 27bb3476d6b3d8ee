import { z } from "zod";

/** A record of the contract, with its name in the reference. */
export const record = <Shape extends z.core.$ZodLooseShape>(id: string, shape: Shape) =>
  z.object(shape).meta({ id });
