import { useClient } from "@parley/client/react";
import type { SecondFactor as State } from "@parley/protocol";
import { useCallback, useState } from "react";
import { useFetched } from "../lib/fetched.ts";
import { fullTime } from "../lib/time.ts";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Icon } from "../ui/Icon.tsx";
import { Unfetched } from "../ui/Unfetched.tsx";
import { ProofForm } from "./ProofForm.tsx";
import { RecoveryCodes } from "./RecoveryCodes.tsx";
import { SecondFactorSetup } from "./SecondFactorSetup.tsx";

/** Whether signing in needs a second factor, and what can be changed about it. */
export function SecondFactor() {
  const client = useClient();
  const fetched = useFetched(useCallback(() => client.getSecondFactor(), [client]));
  const { value: state, fetchAgain } = fetched;
  if (!state) return <Unfetched fetched={fetched} className="h-16" />;
  if (state.enabled) return <Enabled state={state} onChange={fetchAgain} />;
  return state.available ? (
    <Disabled onChange={fetchAgain} />
  ) : (
    <p className="text-base text-ink-2">
      You do not sign in with a password here. The service that signs you in decides on a second
      factor.
    </p>
  );
}

function Disabled({ onChange }: { onChange: () => void }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div className="flex flex-wrap items-center justify-between gap-x-3 gap-y-2">
      <p className="min-w-0 flex-1 basis-56 text-base text-ink-2">
        Ask for a code of an authenticator app, besides the password, whenever somebody signs in to
        your account.
      </p>
      <Button size="small" icon="shield" onClick={() => setOpen(true)}>
        Set up
      </Button>
      {isOpen && (
        <SecondFactorSetup
          onClose={() => {
            setOpen(false);
            onChange();
          }}
        />
      )}
    </div>
  );
}

function Enabled({ state, onChange }: { state: State; onChange: () => void }) {
  const [open, setOpen] = useState<"renew" | "remove" | null>(null);
  const close = () => {
    setOpen(null);
    onChange();
  };
  return (
    <div className="flex flex-col gap-3">
      <p className="flex items-center gap-2 text-base">
        <span className="text-good">
          <Icon name="check" size={16} />
        </span>
        <span>On since {fullTime(state.enabled_at ?? "")}.</span>
      </p>
      <p className={`text-sm ${state.recovery_codes_left < 3 ? "text-danger" : "text-ink-3"}`}>
        {codesLeft(state.recovery_codes_left)}
      </p>
      <div className="flex flex-wrap gap-2">
        <Button size="small" onClick={() => setOpen("renew")}>
          New recovery codes
        </Button>
        <Button size="small" look="danger" onClick={() => setOpen("remove")}>
          Turn off
        </Button>
      </div>
      {open === "renew" && <RenewDialog onClose={close} />}
      {open === "remove" && <RemoveDialog onClose={close} />}
    </div>
  );
}

function RenewDialog({ onClose }: { onClose: () => void }) {
  const client = useClient();
  const [codes, setCodes] = useState<readonly string[] | null>(null);
  return (
    <Dialog title={codes ? "Your recovery codes" : "New recovery codes"} onClose={onClose}>
      {codes ? (
        <RecoveryCodes codes={codes} onClose={onClose} />
      ) : (
        <ProofForm
          action="Get new codes"
          onClose={onClose}
          onSubmit={async (proof) =>
            setCodes((await client.renewRecoveryCodes(proof)).recovery_codes)
          }
        >
          The codes that you have now stop working.
        </ProofForm>
      )}
    </Dialog>
  );
}

function RemoveDialog({ onClose }: { onClose: () => void }) {
  const client = useClient();
  return (
    <Dialog title="Turn the second factor off?" onClose={onClose}>
      <ProofForm
        action="Turn off"
        look="danger"
        onClose={onClose}
        onSubmit={async (proof) => {
          await client.removeSecondFactor(proof);
          onClose();
        }}
      >
        Your password alone will be enough to sign in.
      </ProofForm>
    </Dialog>
  );
}

const codesLeft = (count: number) =>
  count === 1 ? "1 recovery code is left." : `${count} recovery codes are left.`;
